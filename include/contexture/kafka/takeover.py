"""Telling a sender whose transaction outlived its time-out from one whose place another sender took meanwhile.

Brokers answer both alike: the sender is fenced. A sender that was only slow, or stopped for a while, starts again with
a new client. That would fence the one that replaced it; so it looks first whether the ledger holds a row that is not
its own.
"""

from __future__ import annotations

from contexture.kafka.error_table import fenced
from contexture.kafka.errors import FencedError
from contexture.kafka.ledger_entry import LedgerEntry


class OwnRows:
    """The rows of the ledger that one sending of a shard knows: what it found, and what it wrote.

    Attributes:
        outlived: its last transaction was open for longer than it may.
    """

    def __init__(self) -> None:
        self.outlived = False
        self._known: LedgerEntry | None = None
        self._written: LedgerEntry | None = None

    def found(self, entry: LedgerEntry | None) -> None:
        """What stands in the ledger when a client begins."""
        self.outlived, self._known, self._written = False, entry, None

    def writes(self, entry: LedgerEntry) -> None:
        """A row whose commit is tried now; the one before it is committed."""
        if self._written is not None:
            self._known = self._written
        self._written = entry

    def check(self, entry: LedgerEntry | None) -> None:
        """Sees that what stands in the ledger is known.

        Raises:
            FencedError: another sender wrote it.
        """
        if entry not in (self._known, self._written):
            raise replaced()


def replaced() -> FencedError:
    """The error for a sender that stood still for too long and was replaced."""
    return fenced("it went on from the ledger while this one stood still for longer than transaction.timeout.ms")
