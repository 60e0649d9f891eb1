"""The guard against taking a broken read for a mass deletion."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ShrinkGuard:
    """How many identities may vanish in one run: the larger of a share of what is held and a count."""

    share: float
    count: int

    def limit(self, held: int) -> int:
        """The number of identities that may vanish when `held` are held."""
        return max(int(self.share * held), self.count)

    def exceeded(self, vanishing: int, held: int) -> bool:
        """Whether more vanish than may."""
        return vanishing > self.limit(held)

    def check(self, vanishing: int, held: int, *, confirmed: bool) -> None:
        """Lets a deletion of `vanishing` identities pass, or stops the run before anything is sent.

        Raises:
            ConfigurationError: more vanish than the limit, and nobody has confirmed it.
        """
        limit = self.limit(held)
        if confirmed or not self.exceeded(vanishing, held):
            return
        raise ConfigurationError(
            f"{vanishing} of {held} identities are gone from the source, and only {limit} may vanish in one run",
            next_step=(
                "see whether the source is whole (service, service path and types of the publication, the broker's "
                "database); if they are really gone, run the publication again with confirm_shrink"
            ),
            alert="too much vanished",
            vanishing=vanishing,
            held=held,
            limit=limit,
        )
