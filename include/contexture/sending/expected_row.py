"""The ledger's row of a shard that has been sent before: without it, what is in Kafka would be sent again."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from contexture.kafka.errors import LedgerLostError
from contexture.sending.takeover import replaced

if TYPE_CHECKING:
    from contexture.sending.ledger_entry import LedgerEntry
    from contexture.sending.senders import SenderNames


class ExpectedRow(StrEnum):
    """What is known of a shard's row before the ledger is read.

    `NONE`: no sender ever began. `POSSIBLE`: one began, and may have committed its first transaction. `CERTAIN`: a
    transaction was committed.
    """

    NONE = "none"
    POSSIBLE = "possible"
    CERTAIN = "certain"


class RowExpectation:
    """What one sending of a shard expects of the ledger.

    Args:
        names: of the publication.
        shard: its number.
        expected: what earlier sendings left.
    """

    def __init__(self, names: SenderNames, shard: int, expected: ExpectedRow) -> None:
        self._names = names
        self._shard = shard
        self._expected = expected

    def begins(self) -> None:
        """A transaction may be committed from now on."""
        if self._expected is ExpectedRow.NONE:
            self._expected = ExpectedRow.POSSIBLE

    def committed(self) -> None:
        """A transaction is committed."""
        self._expected = ExpectedRow.CERTAIN

    def is_answered(self, hidden: LedgerEntry) -> bool:
        """Whether brokers answered the commit of a hidden row of the shard's first transaction: then it counts."""
        return self._expected is ExpectedRow.CERTAIN and hidden.transaction == 0

    def check_missing(self, first_is_committed: Callable[[], bool], is_there_now: Callable[[], bool]) -> None:
        """Sees that a shard of which the ledger held no row was never sent.

        Args:
            first_is_committed: whether readers see the records of the shard's first transaction.
            is_there_now: whether the ledger holds a row by now.

        Raises:
            LedgerLostError: the row was there, and is lost.
            FencedError: another sender wrote it while this one was stopped.
        """
        is_possible = self._expected is ExpectedRow.POSSIBLE
        if not (self._expected is ExpectedRow.CERTAIN or (is_possible and first_is_committed())):
            return
        if is_there_now():
            raise replaced()
        raise ledger_lost(self._names, f"holds nothing of shard {self._shard} any more")


def ledger_lost(names: SenderNames, how: str) -> LedgerLostError:
    """The error for a ledger that no longer says what was sent, with how to get it back."""
    rebuild = (
        f"see what `contexture ledger rebuild {names.publication} --dry-run` finds in the topics, then run it "
        "without --dry-run and clear the task"
    )
    anew = "abandon the backfill's outbox, then start the backfill again: its records are then there twice"
    return LedgerLostError(
        f"the ledger {names.ledger_topic}, which says what was sent, {how}: sending now would send records twice",
        next_step=rebuild if names.backfill is None else anew,
        publication=names.publication,
    )
