"""What the registry keeps: structures in the formats they were submitted in, and transactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from contexture.sources.sdmx import Artefact, Format

Action = Literal["Append", "Merge", "Replace", "FullReplace", "Delete"]
ACTIONS: tuple[Action, ...] = ("Append", "Merge", "Replace", "FullReplace", "Delete")
Face = Literal["fmr", "plain"]


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure as a transaction left it.

    Attributes:
        renderings: the same content by format; a format that isn't there is one that can't express it.
        modified_ms: when, in milliseconds since 1970.
    """

    renderings: Mapping[Format, Artefact]
    modified_ms: int

    @property
    def first(self) -> Artefact:
        """The rendering that was submitted first."""
        return next(iter(self.renderings.values()))

    @property
    def urn(self) -> str:
        """Of the structure."""
        return str(self.first.urn)


@dataclass(frozen=True, slots=True)
class Transaction:
    """What one submission did.

    Attributes:
        id: counts from 1.
        at_ms: milliseconds since 1970; transactions may share a millisecond.
        action: that was asked for.
        user: who asked.
        added, modified, deleted: URNs.
        submitted: the message as it came; of a partial submission it is not the content.
        media_type: of that message.
    """

    id: int
    at_ms: int
    action: Action
    user: str
    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    submitted: bytes = field(default=b"", repr=False)
    media_type: str = "application/xml"

    @property
    def urns(self) -> tuple[str, ...]:
        """All that it touched."""
        return self.added + self.modified + self.deleted
