"""Sends one shard of an outbox to Kafka, each record once for read-committed readers, whatever is killed when.

The protocol (DESIGN section 7): fence earlier senders, read in the ledger how far the shard got, and from there put the
records of each transaction and the ledger's next row into one Kafka transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from contexture.errors import ContextureError, RejectedError
from contexture.kafka.arbitration import Start, start_of
from contexture.kafka.clients import transactional_producer
from contexture.kafka.dead_letter import DeadLetters
from contexture.kafka.encoding import Delivered, Encode, encoded
from contexture.kafka.errors import BrokersAwayError
from contexture.kafka.failures import SendAgainError
from contexture.kafka.hidden import HiddenRecords
from contexture.kafka.ledger import Ledger
from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.patience import Patience
from contexture.kafka.ports import LedgerPort, OpenProducer, ShardReader
from contexture.kafka.progress import Progress, SendProgress, Step, silent
from contexture.kafka.request_limit import RequestLimit
from contexture.kafka.rows import Piece, pieces
from contexture.kafka.senders import SenderNames
from contexture.kafka.session import Session
from contexture.kafka.setting_aside import SettingAside, one_by_one
from contexture.kafka.settings import ClientSettings
from contexture.kafka.settlement import HiddenPort, Settlement
from contexture.kafka.takeover import OwnRows
from contexture.kafka.tally import ShardResult, Tally, TransactionSize
from contexture.kafka.watch import ClientWatch
from contexture.kafka.whole import check_end, check_position, no_registry_transaction
from contexture.outbox.topic_groups import TOPICS_OF_A_CLIENT

AfterFailure = Callable[[ContextureError], int | None]
"""Given a failure that counts: milliseconds to wait before the next attempt, or None when there is none left."""

# Transactions that outlive their time-out are done again for free, but not for ever.
_FREE_REPEATS = 3


class Publisher:
    """Sends the shards of a publication's outboxes; one call of `publish` for each shard.

    Args:
        settings: the connection.
        names: the publication's transactional ids and ledger.
        shards: how many shards the outbox has; the ledger gets a partition for each.
        broker_wait_seconds: how long brokers are waited for before an attempt counts as failed.
        progress: is told what goes on.
        encode: changes rows before they are sent (`contexture.kafka.encoding`).
        delivered: is told of each record that a broker has taken or not.
        dead_letters: where records go that can never be sent; without it they stop the sending. Not for registries,
            whose transactions would have holes.
        ledger, hidden, open_producer, clock, sleep: for tests.
    """

    def __init__(
        self,
        settings: ClientSettings,
        names: SenderNames,
        *,
        shards: int,
        broker_wait_seconds: float = 300.0,
        progress: Progress = silent,
        encode: Encode | None = None,
        delivered: Delivered | None = None,
        dead_letters: DeadLetters | None = None,
        ledger: LedgerPort | None = None,
        hidden: HiddenPort | None = None,
        open_producer: OpenProducer = transactional_producer,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._names = names
        self._shards = shards
        self._progress = progress
        self._encode = encode
        self._delivered = delivered
        self._dead_letters = dead_letters
        self._patience = Patience(broker_wait_seconds, self._waiting, clock=clock)
        self._ledger: LedgerPort = ledger or Ledger(settings, names, patience=self._patience)
        self._hidden: HiddenPort = hidden or HiddenRecords(settings, self._patience)
        self._requests = RequestLimit(settings, self._patience)
        self._sending: _Sending | None = None
        self._open_producer = open_producer
        self._clock = clock
        self._sleep = sleep

    def publish(
        self,
        reader: ShardReader,
        *,
        attempts: Iterable[int] | AfterFailure = (),
        committed: Callable[[LedgerEntry], None] = lambda entry: None,
        skipped: Callable[[int], None] = lambda transactions: None,
    ) -> ShardResult:
        """Sends what is not yet sent of a shard.

        Args:
            reader: the shard.
            attempts: milliseconds to wait before each further attempt after a failed one, or a function that is asked
                for them with the failure; a caller that persists its counter does so there. When there is none left,
                the failure is raised; what the function itself raises ends the sending. Waiting for brokers and doing
                an outlived transaction again take none until `broker_wait_seconds` are over.
            committed: is told each transaction that became visible; must return soon and not raise.
            skipped: is told how many transactions, from the first on, are in Kafka before anything is sent.

        Raises:
            RetriableError: the brokers stayed away, or the attempts are used up; the outbox stays as it is.
            FencedError: another sender took over the shard.
            SequenceTakenError: another outbox of the same sequence was sent.
            RejectedError: a record can never be sent (`.context["topic"]`); nothing of its transaction is visible. With
                `dead_letters`: more such records than may be left out.
            KafkaConfigurationError: a person must change the connection, a topic or a permission.
        """
        after_failure = attempts if callable(attempts) else _taken_from(attempts)
        self._sending = _Sending(self, reader, after_failure, committed, skipped)
        self._patience.relieve()
        return self._sending.run()

    def _waiting(self, sentence: str) -> None:
        if self._sending is not None:
            self._sending.tell("waiting", sentence)


class _Sending:
    """One call of `publish`."""

    def __init__(
        self,
        publisher: Publisher,
        reader: ShardReader,
        after_failure: AfterFailure,
        committed: Callable[[LedgerEntry], None],
        skipped: Callable[[int], None],
    ) -> None:
        self._publisher = publisher
        self._reader = reader
        self._after_failure = after_failure
        self._committed = committed
        self._skipped = skipped
        self._tally = Tally()
        self._own = OwnRows()
        self._aside = SettingAside(publisher._dead_letters, reader, publisher._requests)
        self._settlement = Settlement(
            reader,
            publisher._ledger,
            publisher._hidden,
            self._encoded,
            publisher._clock,
            publisher._sleep,
            publisher._dead_letters,
        )
        self._free_repeats = 0
        self._topics = 0
        self._ended_well = False

    def run(self) -> ShardResult:
        started = self._publisher._clock()
        finished = False
        while not finished:
            try:
                finished = self._send()
            except RejectedError as refused:
                self._before_careful(refused)
            except BrokersAwayError as failure:
                self._before_attempt(failure)
            except SendAgainError as failure:
                self._before_again(failure)
            else:
                self._ended_well = True
        result = self._tally.result(self._reader, self._publisher._clock() - started)
        self.tell("done", f"sent {result.records_sent} records in {result.transactions} transactions")
        return result

    def _send(self) -> bool:
        """Sends with one client; False when the rest needs another client."""
        after_own, self._ended_well = self._ended_well, False
        ledger, shard = self._publisher._ledger, self._reader.shard
        ledger.prepare(self._publisher._shards)
        # Another instance's sender is not fenced for nothing: it may be at what follows.
        if self._reader.registry and self._is_all_told(ledger.read(shard)):
            return True
        if self._own.outlived:
            self._own.check(ledger.hidden(shard) or ledger.read(shard))
        careful, session = self._aside.is_careful, self._open_session()
        try:
            # While all topics are listed, brokers end the last client's transaction in as many of them: a client that
            # begins before they have sleeps for half a second.
            session.initialise(self._topics)
            # What this sending left a moment ago with its last client is settled.
            entry = ledger.settled(shard) if after_own else self._settled(session)
            self._begin(self._start(entry), entry)
            if careful and not self._aside.is_careful:
                # The commit whose answer got lost did happen: the rest needs no such client.
                return False
            return self._tally.superseded or self._send_rest(session)
        except RejectedError:
            if self._aside.is_careful:
                session.await_reports(lambda: self._aside.has_found)
            raise
        finally:
            session.close()

    def _settled(self, session: Session) -> LedgerEntry | None:
        """The ledger's row to go on from, once what an earlier transaction left undecided is ended."""
        ledger, shard = self._publisher._ledger, self._reader.shard
        entry, hidden = ledger.settled(shard), ledger.hidden(shard)
        settlement = self._settlement
        if hidden is not None and not settlement.is_repeated(hidden, self._start(entry)):
            entry, hidden = hidden, None
        start = self._start(entry)
        if not start.superseded:
            aborted = settlement.settle(session, start, hides_row=hidden is not None)
            if aborted:
                self.tell("connecting", f"aborted what an earlier transaction left in {len(aborted)} partitions")
        return entry

    def _encoded(self, piece: Piece) -> Piece:
        return piece if self._publisher._encode is None else encoded(piece, self._publisher._encode)

    def _is_all_told(self, entry: LedgerEntry | None) -> bool:
        start = self._start(entry)
        if not start.superseded and start.position < self._reader.records:
            return False
        self._begin(start, entry)
        return True

    def _start(self, entry: LedgerEntry | None) -> Start:
        # Backfills do not supersede each other: each interval has a ledger key of its own.
        return start_of(self._reader, entry, alone=self._publisher._names.backfill is not None)

    def _begin(self, start: Start, entry: LedgerEntry | None) -> None:
        self._own.found(entry)
        self._tally.begun_at(start, entry)
        self._aside.begin_at(self._tally.position)
        if start.superseded:
            self.tell("done", "a later outbox was sent already: nothing of this one is sent")
            return
        if start.transactions:
            self._skipped(start.transactions)
            self.tell("sending", _told(start))
        self.tell("sending", f"sending from position {self._tally.position}")

    def _send_rest(self, session: Session) -> bool:
        """Sends transactions until the end (True) or until the client knows too many topics (False)."""
        topics: set[str] = set()
        size: TransactionSize | None = None
        expected = self._tally.position
        for piece in pieces(self._reader.batches(self._tally.position)) if self._left() else ():
            check_position(piece.first_position, expected)
            piece = self._encoded(piece)
            if size is None or size.transaction != piece.transaction:
                if size is not None:
                    self._commit(session, size)
                    if self._aside.end() or len(topics | piece.topics()) > TOPICS_OF_A_CLIENT:
                        return False
                self._topics = len(piece.topics())
                session.meet(self._topics)
                session.begin()
                size = TransactionSize(piece.transaction)
            self._produce(session, piece)
            topics |= piece.topics()
            size = size.grown(piece)
            expected += piece.rows.num_rows
        if size is not None:
            self._commit(session, size)
            self._settlement.await_visible()
        check_end(self._tally.position, self._reader.records)
        return True

    def _produce(self, session: Session, piece: Piece) -> None:
        if self._aside.is_careful:
            self._aside.produce(session, piece)
            return
        self._publisher._requests.check(piece.rows)
        session.produce(piece.rows, self._reader.headers)

    def _commit(self, session: Session, size: TransactionSize) -> None:
        source, deletions = self._told_with(size)
        entry = LedgerEntry(
            outbox=self._reader.outbox_id,
            sequence=self._reader.sequence,
            position=self._tally.position + size.records,
            records=size.records,
            bytes=size.bytes,
            transaction=size.transaction,
            source_transaction=source,
            at=datetime.now(UTC),
            source_deletions=deletions,
            dead_letters=(*self._tally.dead_letters, *self._aside.positions),
        )
        self._own.writes(entry)
        ledger, shard = self._publisher._ledger, self._reader.shard
        session.produce_one(ledger.topic, key=ledger.key(shard), value=entry.to_json(), partition=shard)
        session.commit()
        self._free_repeats = 0
        self._tally.committed(entry)
        self._committed(entry)
        for position in self._aside.positions:
            self.tell("sending", f"position {position} went to the dead-letter topic: it can never be sent")
        self.tell("sending", f"{entry.position} of {self._reader.records} records are committed")

    def _told_with(self, size: TransactionSize) -> tuple[int | None, bool]:
        """How far the registry's log is told with this transaction."""
        if not self._reader.registry:
            return size.source_transaction, False
        if size.transaction >= len(self._reader.registry):
            raise no_registry_transaction(size.transaction)
        place = self._reader.registry[size.transaction].place
        # A flush of what is told already takes nothing back.
        return place if self._tally.place is None else max(place, self._tally.place)

    def _open_session(self) -> Session:
        publisher, watch = self._publisher, ClientWatch()
        watch.delivered = publisher._delivered
        transactional_id = publisher._names.transactional_id(self._reader.shard)
        self.tell("connecting", f"starting sender {transactional_id}")
        settings = one_by_one(publisher._settings) if self._aside.is_careful else publisher._settings
        return Session(
            publisher._open_producer(settings, transactional_id, watch),
            watch,
            publisher._patience,
            ledger_topic=publisher._ledger.topic,
            transaction_timeout_seconds=publisher._settings.transaction_timeout_seconds,
            clock=publisher._clock,
        )

    def _before_careful(self, refused: ContextureError) -> None:
        if not self._aside.learns(refused, self._tally.position, len(self._tally.dead_letters)):
            raise refused
        self.tell("again", f"doing the transaction again, to find what can't be sent: {refused.message}")

    def _before_again(self, failure: SendAgainError) -> None:
        if self._aside.has_found:
            self._before_careful(failure.error)
            return
        self._free_repeats += 1
        self._own.outlived = failure.outlived
        if not failure.counted and self._free_repeats <= _FREE_REPEATS:
            self.tell("again", f"doing the transaction again with a new client: {failure.error.message}")
            return
        self._before_attempt(failure.error)

    def _before_attempt(self, error: ContextureError) -> None:
        delay_ms = self._after_failure(error)
        if delay_ms is None:
            raise error
        self._free_repeats = 0
        self._publisher._patience.relieve()
        self.tell("again", f"another attempt in {delay_ms} ms: {error.message}")
        self._publisher._sleep(delay_ms / 1000)

    def _left(self) -> bool:
        return self._tally.position < self._reader.records

    def tell(self, step: Step, detail: str) -> None:
        self._publisher._progress(
            SendProgress(step, self._reader.shard, self._tally.position, self._reader.records, detail)
        )


def _told(start: Start) -> str:
    whose = "by an earlier send" if start.own else "with another outbox"
    return f"{start.transactions} transactions are in Kafka already, sent {whose}"


def _taken_from(delays: Iterable[int]) -> AfterFailure:
    waits = iter(delays)
    return lambda error: next(waits, None)
