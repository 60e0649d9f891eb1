"""Where the sending of a shard begins: after what is in Kafka already, by any sender.

Two rules decide between outboxes. Those of a registry that numbers its transactions are compared by these numbers
alone: of instances that share only Kafka, each shows what the others have not sent. All others are compared by
their sequence, which instances on one storage have in common.

Brokers respond alike to three events: another sender took the shard over; the transaction outlived its time-out; a
request of an earlier client arrived late (an InitProducerId that a network delayed raises the epoch as a living sender
does, and fences only the right one). Only the first leaves a row in the ledger that this sending did not write. So the
ledger is read, after a wait in which another sender would make progress, and without such a row the sending continues
with a new client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from contexture.errors import DefectError
from contexture.kafka.error_codes import fenced
from contexture.kafka.errors import FencedError, LedgerLostError, SequenceTakenError
from contexture.sending.interfaces import LedgerPort, ShardReader
from contexture.sending.ledger import LedgerEntry

if TYPE_CHECKING:
    from contexture.sending.ledger import SenderNames
    from contexture.storage.manifests import RegistryPart

LogPlace = tuple[int, bool]
"""A place in a registry's log: its transaction, and whether these are its deletions."""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where sending begins.

    Attributes:
        position: of the first record to send.
        transactions: how many Kafka transactions of the shard lie before it.
        own: an earlier sending of this very outbox got that far.
        superseded: something later was sent: nothing of the shard may be.
        place: up to where the registry's log is sent already; None where that is not known.
    """

    position: int = 0
    transactions: int = 0
    own: bool = False
    superseded: bool = False
    place: LogPlace | None = None


def find_resume_point(reader: ShardReader, entry: LedgerEntry | None, *, alone: bool = False) -> ResumePoint:
    """Returns where the sending of a shard begins after the ledger's row; `alone`: no other outbox can block it.

    Raises:
        SequenceTakenError: another outbox of the same sequence was sent, and nothing else shows which is later.
        DefectError: the outbox's registry transactions are not in order.
    """
    check_parts(reader.registry)
    if entry is None:
        return ResumePoint()
    if entry.outbox == reader.outbox_id:
        return ResumePoint(entry.position, entry.transaction + 1, own=True, place=entry.source_place)
    if alone:
        return ResumePoint()
    if reader.registry and entry.source_place is not None:
        return start_after(entry.source_place, reader.registry, records=reader.records, flush=reader.flush)
    if entry.sequence == reader.sequence:
        raise sequence_taken(entry, reader.outbox_id)
    return ResumePoint(superseded=entry.sequence > reader.sequence)


def start_after(place: LogPlace, parts: Sequence[RegistryPart], *, records: int, flush: bool) -> ResumePoint:
    """Returns where an outbox of registry transactions begins when the log was sent up to a place.

    A flush is sent whole unless something later than its content was sent; of changes, what was sent is left out.

    Args:
        place: registry transaction, and whether its deletions were sent.
        parts: one for each Kafka transaction, in order.
        records: how many the shard holds.
        flush: whether they are all that the registry holds.
    """
    if flush:
        return ResumePoint(superseded=parts[0].id < place[0], place=place)
    sent = sum(part.place <= place for part in parts)
    return ResumePoint(parts[sent].first_position if sent < len(parts) else records, sent, place=place)


def check_parts(parts: Sequence[RegistryPart]) -> None:
    """Checks that the parts are those of transactions 0, 1, 2 …, each later in the registry's order.

    Raises:
        DefectError: they are not.
    """
    numbered = [part.transaction for part in parts] == list(range(len(parts)))
    rising = all(
        before.place < after.place and before.first_position < after.first_position for before, after in pairwise(parts)
    )
    if not (numbered and rising and (not parts or parts[0].first_position == 0)):
        raise DefectError(
            "the registry transactions of an outbox are not in the registry's order",
            next_step="do not send it: abandon the outbox and report this (its manifest is damaged)",
        )


def sequence_taken(entry: LedgerEntry, outbox: str) -> SequenceTakenError:
    """Returns the error for an outbox whose place in the order another one took."""
    return SequenceTakenError(
        f"outbox {entry.outbox} was sent under the same sequence {entry.sequence}",
        next_step=f"abandon this one (`contexture outbox abandon {outbox} --reason …`): the next run compares again "
        "and sends everything",
        outbox=outbox,
    )


# Of two living senders, each of which fences the other, one has its transaction through within these waits: most take
# less than 2 s. They grow so that long transactions get through too.
FENCED_WAITS_SECONDS: Final = (2.0, 6.0, 18.0)


class OwnCommits:
    """The rows of the ledger that one sending of a shard knows: what it found, and what it wrote.

    Attributes:
        outlived: its last transaction was open for longer than it may.
        has_begun: it has found out what the ledger shows.
    """

    def __init__(self) -> None:
        self.outlived = False
        self.has_begun = False
        self._known: LedgerEntry | None = None
        self._written: LedgerEntry | None = None

    def found(self, entry: LedgerEntry | None) -> None:
        """What the ledger shows when a client begins."""
        self.outlived, self.has_begun, self._known, self._written = False, True, entry, None

    def writes(self, entry: LedgerEntry) -> None:
        """Remembers a row whose commit begins now; the one before it is committed."""
        if self._written is not None:
            self._known = self._written
        self._written = entry

    def knows(self, entry: LedgerEntry | None) -> bool:
        """Returns whether no other sender wrote what the ledger shows."""
        return entry in (self._known, self._written)

    def check(self, entry: LedgerEntry | None) -> None:
        """Checks that this sending wrote or found the ledger's row.

        Raises:
            FencedError: another sender wrote it.
        """
        if not self.knows(entry):
            raise replaced()


@dataclass
class Fencings:
    """The fencings of one sending of a shard, counted until a transaction is committed."""

    own: OwnCommits
    ledger: LedgerPort
    shard: int
    again: Callable[[str], None]
    sleep: Callable[[float], None]
    count: int = 0

    def succeeded(self) -> None:
        """A transaction is committed: what fenced the sender is over."""
        self.count = 0

    def look_into(self, failure: FencedError) -> None:
        """Returns when the sending may continue with a new client.

        Raises:
            FencedError: another sender took over, or fenced this one too often in a row.
        """
        if not self.own.has_begun:
            # It was fenced before it looked. What is there now counts as found.
            self.own.found(self.row())
        if not self.own.knows(self.row()):
            raise failure
        if self.count == len(FENCED_WAITS_SECONDS):
            raise _fenced_too_often(failure, self.count + 1) from failure
        wait = FENCED_WAITS_SECONDS[self.count]
        self.count += 1
        self.again(f"fenced, but no other sender wrote to the ledger; checking it again in {wait:.0f} s")
        self.sleep(wait)
        if not self.own.knows(self.row()):
            raise failure

    def row(self) -> LedgerEntry | None:
        """Returns the ledger's newest, also of a transaction that is open or that Kafka never ended."""
        return self.ledger.read_uncommitted(self.shard) or self.ledger.read(self.shard)


def replaced() -> FencedError:
    """Returns the error for a sender that was paused for too long and was replaced."""
    return fenced("it continued from the ledger while this one was paused for longer than transaction.timeout.ms")


def _fenced_too_often(failure: FencedError, times: int) -> FencedError:
    return FencedError(
        f"this sender was fenced {times} times in a row, and the ledger shows no row of another one; the last time: "
        f"{failure.message}",
        next_step="make sure that only one instance sends this publication under this name and that brokers are "
        "healthy, then clear the task: it continues from the ledger",
        alert="another sender took over",
    )


class ExpectedRow(StrEnum):
    """What is known of a shard's row before the ledger is read.

    `NONE`: no sender ever began. `POSSIBLE`: one began, and may have committed its first transaction. `CERTAIN`: a
    transaction was committed.
    """

    NONE = "none"
    POSSIBLE = "possible"
    CERTAIN = "certain"


@dataclass
class RowExpectation:
    """What one sending of a shard expects of the ledger."""

    names: SenderNames
    shard: int
    expected: ExpectedRow

    def begins(self) -> None:
        """A transaction may be committed from now on."""
        if self.expected is ExpectedRow.NONE:
            self.expected = ExpectedRow.POSSIBLE

    def committed(self) -> None:
        """A transaction is committed."""
        self.expected = ExpectedRow.CERTAIN

    def is_answered(self, hidden: LedgerEntry) -> bool:
        """Whether brokers answered the commit of a hidden row of the shard's first transaction: then it counts."""
        return self.expected is ExpectedRow.CERTAIN and hidden.transaction == 0

    def check_missing(self, first_is_committed: Callable[[], bool], is_there_now: Callable[[], bool]) -> None:
        """Checks that a shard without a row in the ledger was never sent.

        Raises:
            LedgerLostError: the row was there, and is lost.
            FencedError: another sender wrote it while this one was stopped.
        """
        is_possible = self.expected is ExpectedRow.POSSIBLE
        if not (self.expected is ExpectedRow.CERTAIN or (is_possible and first_is_committed())):
            return
        if is_there_now():
            raise replaced()
        raise ledger_lost(self.names, f"holds nothing of shard {self.shard} any more")


def ledger_lost(names: SenderNames, how: str) -> LedgerLostError:
    """Returns the error for a ledger that no longer says what was sent, with how to get it back."""
    rebuild = (
        f"check what `contexture ledger rebuild {names.publication} --dry-run` finds in the topics, then run it "
        "without --dry-run and clear the task"
    )
    anew = "abandon the backfill's outbox, then start the backfill again: its records then exist twice"
    return LedgerLostError(
        f"the ledger {names.ledger_topic}, which records what was sent, {how}: sending now would send records twice",
        next_step=rebuild if names.backfill is None else anew,
        publication=names.publication,
    )
