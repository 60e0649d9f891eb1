"""Why a structure message cannot be split, and what was noticed while it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from contexture.errors import RejectedError


class StructureMessageError(RejectedError):
    """These bytes are no structure message that can be split: broken, forbidden, or something else.

    What was split before it was raised is right, but it isn't all: nothing may be taken for absent.
    """


class UnsplittableFormatError(StructureMessageError):
    """The format is known and can't be split into artefacts: ask the registry for one artefact at a time."""


class LimitExceededError(StructureMessageError):
    """The message is deeper or larger than allowed."""


FindingCode = Literal[
    "not-maintainable",
    "unknown-kind",
    "no-identity",
    "urn-differs",
    "outside",
    "notice",
    "late-header",
    "invalid",
    "unchecked",
]
"""What was found.

- `not-maintainable`: an artefact of its own in this message, but no maintainable one: it has no URN to identify it.
- `unknown-kind`: the model has no such kind; it is split as it is, with the URN that it declares.
- `no-identity`: agency or id are missing, so that there is no URN.
- `urn-differs`: the declared URN is not the one that follows from kind, agency, id and version.
- `outside`: something is between structures, and is none: it is in no artefact.
- `notice`: the sender adds something about the message as a whole, such as an error or a truncation.
- `late-header`: the header follows the structures; messages around artefacts have none.
- `invalid`: the schema of the format refuses the message around the artefact.
- `unchecked`: the artefact is too large to be validated.
"""

_AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class SplitWarning:
    """One thing that was found.

    Attributes:
        code: which of the known things it is.
        message: what a person should know, with names and ids, but no content.
        offset: its first byte in the message in UTF-8, where that is known.
    """

    code: FindingCode
    message: str
    offset: int | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def note(findings: list[SplitWarning], finding: SplitWarning) -> None:
    """Adds a finding, up to a number that a person can read."""
    if len(findings) < _AT_MOST:
        findings.append(finding)
    elif len(findings) == _AT_MOST:
        findings.append(SplitWarning(finding.code, f"there is more than these {_AT_MOST:,} findings", finding.offset))


@dataclass(frozen=True, slots=True)
class Limits:
    """What `split` takes at most; a message beyond is refused with a `LimitExceededError`.

    Attributes:
        artefact_bytes: of one artefact, in UTF-8; the memory that splitting needs follows the largest one.
        envelope_bytes: of what is between two artefacts: header, comments, start tags, other members.
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
            raise _exceeded("the text between two artefacts is larger than", "envelope_bytes", self.envelope_bytes)

    def check_message(self, size: int) -> None:
        """Refuses a message of more bytes."""
        if size > self.message_bytes:
            raise _exceeded("the message is larger than", "message_bytes", self.message_bytes)

    def too_deep(self) -> LimitExceededError:
        """Returns the error of an artefact that is nested deeper."""
        return _exceeded("an artefact is nested deeper than", "depth", self.depth)


def _exceeded(what: str, name: str, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"{what} {limit:,}",
        next_step=f"check where the message comes from; if that is intended, split it with a greater `{name}`",
    )
