"""How large and how deep a message may be before it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.sdmx.errors import LimitExceededError


@dataclass(frozen=True, slots=True)
class Limits:
    """What `split` takes at most; a message beyond is refused with a `LimitExceededError`.

    Attributes:
        artefact_bytes: of one artefact, in UTF-8; the memory that splitting needs follows the largest one.
        envelope_bytes: of what stands between two artefacts: header, comments, start tags, other members.
        depth: elements, or objects and arrays, inside each other within one artefact.
        message_bytes: of the whole message, in UTF-8.
    """

    artefact_bytes: int = 1 << 30
    envelope_bytes: int = 16 << 20
    depth: int = 200
    message_bytes: int = 1 << 40

    def check_artefact(self, size: int) -> None:
        """Refuses an artefact of more bytes."""
        if size > self.artefact_bytes:
            raise _exceeded("an artefact is larger than", "artefact_bytes", self.artefact_bytes)

    def check_envelope(self, size: int) -> None:
        """Refuses more bytes between two artefacts."""
        if size > self.envelope_bytes:
            raise _exceeded("what stands between two artefacts is larger than", "envelope_bytes", self.envelope_bytes)

    def check_message(self, size: int) -> None:
        """Refuses a message of more bytes."""
        if size > self.message_bytes:
            raise _exceeded("the message is larger than", "message_bytes", self.message_bytes)

    def too_deep(self) -> LimitExceededError:
        """The error of an artefact that is nested deeper."""
        return _exceeded("an artefact is nested deeper than", "depth", self.depth)


def _exceeded(what: str, name: str, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"{what} {limit:,}",
        next_step=f"check where the message comes from; if it is meant to be so, split it with a greater `{name}`",
    )
