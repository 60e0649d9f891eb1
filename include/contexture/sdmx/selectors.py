"""Selectors of structures, such as `Codelist=ECB:*(*)`: URNs with wildcards, as the registry specification has them.

    Codelist,ValueList=ECB,ECB.*:*(2.3+.1)

Each part is `*` or a list with commas. `ECB.*` are the agencies below ECB, without ECB itself; `*` alone is everything.
Kinds are written as in URNs, in any case; one of another model than SDMX's own needs the whole beginning of its URN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from contexture.sdmx.selector_parts import SelectorParts
from contexture.sdmx.urns import Urn
from contexture.sdmx.versions import VersionPattern


@dataclass(frozen=True, slots=True)
class Selector:
    """Which structures are meant.

    Attributes:
        text: as written.
        kinds: classes as in URNs, or with model and package for those of other models; empty: all.
        agencies: empty: all; `ECB.*` are those below ECB.
        ids: empty: all.
        versions: of each artefact, what one of these stands for is meant; empty: all.
    """

    text: str
    kinds: frozenset[str]
    agencies: frozenset[str]
    ids: frozenset[str]
    versions: tuple[VersionPattern, ...]

    @classmethod
    def parse(cls, text: str) -> Selector:
        """The selector that is written so.

        Raises:
            SelectorError: it can't be read; says where, and what to write.
        """
        parts = SelectorParts.read(text)
        return cls(text, parts.kinds, parts.agencies, parts.ids, parts.versions)

    def matches(self, urn: str | Urn) -> bool:
        """Whether it is about this structure; an item is taken for the artefact that holds it.

        Of the versions that `~` and `+` are about only one is meant: `choose` tells which.
        """
        try:
            named = (Urn.parse(urn) if isinstance(urn, str) else urn).maintainable()
        except ValueError:
            return False
        return (
            self._is_of_kind(named)
            and (not self.agencies or named.agency in self.agencies or self._is_below(named.agency))
            and (not self.ids or named.id in self.ids)
            and (not self.versions or any(pattern.covers(named.version) for pattern in self.versions))
        )

    def choose(self, urns: Iterable[str]) -> tuple[str, ...]:
        """Those of the structures that are meant, in their order.

        Args:
            urns: of everything the registry holds: what is the latest shows only among all.
        """
        matching = [(urn, Urn.parse(urn).maintainable()) for urn in urns if self.matches(urn)]
        if not any(pattern.is_latest for pattern in self.versions):
            return tuple(urn for urn, _ in matching)
        held: dict[Urn, list[str]] = {}
        for _, named in matching:
            held.setdefault(_without_version(named), []).append(named.version)
        chosen = {artefact: self._chosen(versions) for artefact, versions in held.items()}
        return tuple(urn for urn, named in matching if named.version in chosen[_without_version(named)])

    def _chosen(self, versions: Sequence[str]) -> set[str]:
        return {version for pattern in self.versions for version in pattern.choose(versions)}

    def _is_of_kind(self, urn: Urn) -> bool:
        whole = f"{urn.model}.{urn.package}.{urn.class_name}"
        return not self.kinds or urn.class_name in self.kinds or whole in self.kinds

    def _is_below(self, agency: str) -> bool:
        parts = agency.split(".")
        return any(f"{'.'.join(parts[:length])}.*" in self.agencies for length in range(1, len(parts)))


def choose(selectors: Sequence[Selector], urns: Sequence[str]) -> tuple[str, ...]:
    """Those of the structures that any of the selectors means, in their order; without selectors all of them.

    Args:
        selectors: of a publication's `source.select`.
        urns: of everything the registry holds.
    """
    if not selectors:
        return tuple(urns)
    chosen = {urn for selector in selectors for urn in selector.choose(urns)}
    return tuple(urn for urn in urns if urn in chosen)


def _without_version(urn: Urn) -> Urn:
    return replace(urn, version="")
