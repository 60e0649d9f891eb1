"""The transactions of a shard: rows, then the ledger's row that says how far they go."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from contexture.errors import DefectError
from contexture.kafka.producer import ProducerSession
from contexture.sending.context import SendContext
from contexture.sending.dead_letters import DeadLetterSearch
from contexture.sending.interfaces import ShardReader
from contexture.sending.ledger import LedgerEntry, produce_row
from contexture.sending.pieces import TransactionChunk, split_by_transaction
from contexture.sending.resume import LogPlace, OwnCommits, ResumePoint
from contexture.storage.topic_order import TOPICS_OF_A_CLIENT


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The result of sending a shard.

    Attributes:
        shard: its number.
        outbox: id of the outbox.
        records_sent: committed by this call.
        records_skipped: committed before, by an earlier call or by another instance.
        transactions: committed by this call.
        bytes: of keys and values sent, before compression.
        seconds: from call to return.
        superseded: a later outbox was sent already, so nothing of this one was.
        transactions_elsewhere: registry transactions that were left out because another outbox sent them.
        dead_letters: records of the shard that are in the dead-letter topic instead, by this call or an earlier one;
            they count as sent.
    """

    shard: int
    outbox: str
    records_sent: int
    records_skipped: int
    transactions: int
    bytes: int
    seconds: float
    superseded: bool
    transactions_elsewhere: int = 0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class TransactionSize:
    """What an open transaction holds so far."""

    transaction: int
    records: int = 0
    bytes: int = 0
    source_transaction: int | None = None

    def grown(self, piece: TransactionChunk) -> TransactionSize:
        return replace(
            self,
            records=self.records + piece.rows.num_rows,
            bytes=self.bytes + piece.byte_size(),
            source_transaction=piece.source_transaction,
        )


class SendCounter:
    """How far a shard is sent, and what this sending added.

    Attributes:
        begun: position of the first record that this sending sent; None before it began.
        sent_earlier: how many records earlier sendings of this very outbox left in Kafka; they may have been killed
            before they saw that readers see them.
        since: when the first sending of this outbox's shard began; None where its ledger's row does not say it.
    """

    def __init__(self) -> None:
        self.position = 0
        self.begun: int | None = None
        self.sent_earlier = 0
        self.superseded = False
        self.place: LogPlace | None = None
        self.since: datetime | None = None
        self.dead_letters: tuple[int, ...] = ()
        self._has_begun = False
        self._records = 0
        self._transactions = 0
        self._bytes = 0
        self._elsewhere = 0
        self._last: LedgerEntry | None = None

    def start_at(self, start: ResumePoint, entry: LedgerEntry | None) -> None:
        """Where a client begins, by the ledger's row."""
        self.superseded, self.place = start.superseded, start.place
        if entry is not None and start.own and self._has_begun and entry.position > self.position:
            # The commit whose answer got lost did happen.
            self.committed(entry)
        self.since = self._since(start, entry)
        self._has_begun = True
        self.dead_letters = entry.dead_letters if entry is not None and start.own else ()
        if start.own and self._last is not None and start.position < self._last.position:
            # It was answered as committed and then not carried out.
            self._take_back(self._last)
        if not start.superseded:
            self.position = start.position
            if self.begun is None and start.own:
                self.sent_earlier = start.position
            self.begun = start.position if self.begun is None else min(self.begun, start.position)
        if not start.own:
            self._elsewhere = max(0, start.transactions - self._transactions)

    def committed(self, entry: LedgerEntry) -> None:
        """A transaction became visible."""
        self.position, self.place = entry.position, entry.source_place
        self.dead_letters = entry.dead_letters
        self._records += entry.records
        self._transactions += 1
        self._bytes += entry.bytes
        self._last = entry

    def _since(self, start: ResumePoint, entry: LedgerEntry | None) -> datetime | None:
        if entry is not None and start.own:
            return entry.since
        return self.since if self._has_begun else datetime.fromtimestamp(time.time(), UTC)

    def _take_back(self, entry: LedgerEntry) -> None:
        self._records -= entry.records
        self._transactions -= 1
        self._bytes -= entry.bytes
        self._last = None

    def result(self, reader: ShardReader, seconds: float) -> ShardResult:
        """Returns the whole."""
        return ShardResult(
            shard=reader.shard,
            outbox=reader.outbox_id,
            records_sent=self._records,
            records_skipped=self.position - self._records,
            transactions=self._transactions,
            bytes=self._bytes,
            seconds=seconds,
            superseded=self.superseded,
            transactions_elsewhere=self._elsewhere,
            dead_letters=len(self.dead_letters),
        )


def no_registry_transaction(number: int) -> DefectError:
    """Returns the error for a transaction that the outbox's manifest does not name."""
    return DefectError(
        f"the manifest of the outbox names no registry transaction for transaction {number}",
        next_step="do not send it: abandon the outbox and report this (its manifest is damaged)",
    )


def check_position(found: int, expected: int) -> None:
    """Checks that rows come without a hole.

    Raises:
        DefectError: they do not.
    """
    if found != expected:
        raise DefectError(
            f"the outbox returned position {found} where {expected} was expected",
            next_step="do not send it: prepare the outbox again (its files are damaged or mixed)",
        )


def check_end(position: int, records: int) -> None:
    """Checks that all rows came.

    Raises:
        DefectError: they did not.
    """
    if position != records:
        raise DefectError(
            f"the outbox ended at position {position} of {records}",
            next_step="do not conclude it: prepare the outbox again (its files are damaged or mixed)",
        )


@dataclass
class TransactionSender:
    """Those of one sending, whichever clients they go through.

    Attributes:
        topics: how many the transaction under way has records for, as far as is known.
        sent_topics: names of all that records were given to.
    """

    context: SendContext
    reader: ShardReader
    counter: SendCounter
    own: OwnCommits
    aside: DeadLetterSearch
    committed: Callable[[LedgerEntry], None]
    topics: int = 0
    sent_topics: set[str] = field(default_factory=set)

    def send(self, session: ProducerSession) -> bool:
        """Sends until the end (True), or until the rest needs another client (False).

        It knows too many topics, or the end of its last transaction is uncertain.
        """
        topics: set[str] = set()
        size: TransactionSize | None = None
        expected = self.counter.position
        for piece in split_by_transaction(self.reader.batches(expected)) if expected < self.reader.records else ():
            check_position(piece.first_position, expected)
            piece = self.context.encoded(piece)
            if size is None or size.transaction != piece.transaction:
                if size is not None:
                    self._commit(session, size)
                    is_too_much = len(topics | piece.topics()) > TOPICS_OF_A_CLIENT
                    if self.aside.end() or session.is_uncertain or is_too_much:
                        return False
                self._begin(session, piece)
                size = TransactionSize(piece.transaction)
            self._produce(session, piece)
            topics |= piece.topics()
            self.sent_topics |= piece.topics()
            size = size.grown(piece)
            expected += piece.rows.num_rows
        if size is not None:
            self._commit(session, size)
        return True

    def _begin(self, session: ProducerSession, piece: TransactionChunk) -> None:
        self.topics = len(piece.topics())
        session.connect_to_brokers(self.topics)
        session.begin()

    def _produce(self, session: ProducerSession, piece: TransactionChunk) -> None:
        if self.aside.is_careful:
            self.aside.produce(session, piece)
            return
        self.context.requests.check(piece.rows)
        session.produce(piece.rows, self.reader.headers)

    def _commit(self, session: ProducerSession, size: TransactionSize) -> None:
        entry = self._entry(size)
        self.own.writes(entry)
        ledger, shard = self.context.ledger, self.reader.shard
        session.deliver()
        produce_row(session, ledger, shard, entry)
        session.commit()
        self.committed(entry)

    def _entry(self, size: TransactionSize) -> LedgerEntry:
        source, deletions = self._log_position_after(size)
        return LedgerEntry(
            outbox=self.reader.outbox_id,
            sequence=self.reader.sequence,
            position=self.counter.position + size.records,
            records=size.records,
            bytes=size.bytes,
            transaction=size.transaction,
            source_transaction=source,
            at=datetime.now(UTC),
            source_deletions=deletions,
            dead_letters=(*self.counter.dead_letters, *self.aside.positions),
            since=self.counter.since,
        )

    def _log_position_after(self, size: TransactionSize) -> tuple[int | None, bool]:
        """Returns up to where the registry's log is sent with this transaction."""
        if not self.reader.registry:
            return size.source_transaction, False
        if size.transaction >= len(self.reader.registry):
            raise no_registry_transaction(size.transaction)
        place = self.reader.registry[size.transaction].place
        # A flush of what was sent already moves the position back by nothing.
        return place if self.counter.place is None else max(place, self.counter.place)
