"""What a run would have deleted if the guard against shrinking had allowed it, and the decision of a person."""

from __future__ import annotations

from collections.abc import Sequence

from contexture.storage.documents import StoredDocument

SHOWN = 200
"""How many identities are named; all of them are counted."""


class ShrinkReport(StoredDocument):
    """What would have gone.

    Attributes:
        count: how many identities.
        held: how many the target holds.
        limit: how many may go in one run.
        identities: the first of them, as keys of records have them.
    """

    count: int
    held: int
    limit: int
    identities: tuple[str, ...]

    @classmethod
    def of(cls, identities: Sequence[bytes | str], *, count: int, held: int, limit: int) -> ShrinkReport:
        """Returns the report of these identities; the first 200 are named."""
        texts = (each if isinstance(each, str) else each.decode(errors="replace") for each in identities[:SHOWN])
        return cls(count=count, held=held, limit=limit, identities=tuple(texts))


class ShrinkDecision(StoredDocument):
    """What was decided about the deletions of a run.

    Attributes:
        approved: whether they are allowed.
        who: the user as Airflow knows them; None where no answer came in time.
        reason: as the user wrote it.
    """

    approved: bool
    who: str | None
    reason: str

    @property
    def clause(self) -> str:
        """Returns who decided what, as a clause."""
        if self.who is None:
            return "no answer came in time whether they may be deleted"
        verdict = "approved" if self.approved else "rejected"
        return f"{self.who} {verdict} that they are deleted ({self.reason})"
