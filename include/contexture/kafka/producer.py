"""A transactional producer: opening it, its calls with retries, and the session of one sender."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import DefectError, RejectedError, RetriableError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import call_client, call_errors, connect, error_in, transactional_producer
from contexture.kafka.error_codes import ErrorClass, classify_error, fenced, translate_error
from contexture.kafka.errors import SendAgainError
from contexture.kafka.interfaces import Headers, KafkaErrorLike, MessageLike, Place, TransactionalProducer
from contexture.kafka.produce import Row, produce_rows

if TYPE_CHECKING:
    from contexture.kafka.interfaces import Delivered, OpenProducer
    from contexture.kafka.settings import ClientSettings

_FULL_QUEUE_SECONDS = 0.05
# A flush returns as soon as the queue is empty; one of a transaction that has failed never does.
_FLUSH_SECONDS = 0.5
_FATAL = "_FATAL"


@dataclass
class ProducerCalls:
    """The calls of one producer, repeated while they only run out of time.

    Attributes:
        began: when the open transaction did; None while none is.
    """

    producer: TransactionalProducer
    watch: ClientCallbacks
    broker_wait: BrokerWait
    transaction_timeout_seconds: float
    clock: Callable[[], float]
    began: float | None = None
    outstanding: int = 0
    refused_topic: str | None = None

    def until_done(self, call: Callable[[], None], doing: str) -> None:
        """Makes a call again as long as it only runs out of time.

        Raises:
            BrokersAwayError: for too long.
            ContextureError, SendAgainError: it failed (`explained`).
        """
        while not self._done(call, doing):
            self.take_reports()
            self.watch.raise_refusal(doing)
        self.broker_wait.reset()

    def once(self, call: Callable[[], None], doing: str) -> None:
        """Makes a call.

        Raises:
            ContextureError, SendAgainError: it failed (`explained`).
        """
        try:
            call_client(call)
        except call_errors() as failure:
            raise self.explained(error_in(failure), doing) from failure

    def remember_refused(self, topic: str) -> None:
        """Remembers the topic of a record that the client did not take, because its error does not name it."""
        self.refused_topic = topic

    def take_reports(self, seconds: float = 0) -> None:
        """Lets callbacks be called; a fatal error that the client raises here counts as reported on one."""
        self._report_failure(lambda: self.producer.poll(seconds))

    def await_empty(self, doing: str) -> None:
        """Waits until nothing is left in the client's queue.

        Raises:
            BrokersAwayError: no broker takes it.
            ContextureError, SendAgainError: a fatal error came (`explained`).
        """
        while len(self.producer):
            self.take_reports(_FULL_QUEUE_SECONDS)
            self.watch.raise_refusal(doing)
            if self.watch.fatal is not None:
                raise self.explained(self.watch.fatal, doing)
            self.broker_wait.check("no broker takes records", report_immediately=False)
        self.broker_wait.reset()

    def await_delivery(self, seconds: float) -> None:
        """Waits until nothing is left in the client's queue, a record was refused, or the seconds are over."""
        until = self.clock() + seconds
        while len(self.producer) and not self.watch.has_failed and self.clock() < until:
            self._report_failure(lambda: self.producer.flush(_FLUSH_SECONDS))

    def when_full(self, row: Row) -> None:
        """Hands a row, for which the queue had no room, to the client when there is some; raises what the client does.

        Raises:
            RejectedError: it is larger than the queue.
            BrokersAwayError: no broker takes records.
        """
        while True:
            outstanding = len(self.producer)
            self.producer.poll(_FULL_QUEUE_SECONDS)
            try:
                # A row holds the arguments by position; their types are lost in it.
                self.producer.produce(*row)  # type: ignore[arg-type]
            except BufferError as full:
                self.watch.raise_refusal("sending records")
                if not len(self.producer):
                    raise _larger_than_queue(str(row[0])) from full
                if len(self.producer) < outstanding:
                    self.broker_wait.reset()
                else:
                    self.broker_wait.check("no broker takes records", report_immediately=False)
            except call_errors():
                self.remember_refused(str(row[0]))
                raise
            else:
                return

    def close(self, seconds: float) -> None:
        """Throws away what is queued, and gives an open transaction so long to be aborted."""
        with suppress(*call_errors(), RuntimeError):
            call_client(self.producer.purge)
        if self.began is not None:
            with suppress(*call_errors(), RuntimeError):
                call_client(lambda: self.producer.abort_transaction(seconds))

    def _learn_fatal(self) -> None:
        """Learns why a client has failed, which it says on a callback once, and to every call that begins something.

        The callback can get lost: when it is run by a call that raises, that call has been seen to fail without any
        exception (confluent-kafka 2.16).
        """
        self._report_failure(self.producer.begin_transaction)

    def _report_failure(self, call: Callable[[], object]) -> None:
        """Makes a call; what it raises counts as reported on the callback for errors."""
        try:
            call_client(call)
        except call_errors() as failure:
            self.watch.on_error(error_in(failure))

    def explained(self, error: KafkaErrorLike, doing: str) -> Exception:
        """Returns what a failed call means, with the reasons that came by callback."""
        self.take_reports()
        if error.name() == _FATAL and self.watch.fatal is None:
            self._learn_fatal()
        cause, topic = self.watch.cause(error)
        means = classify_error(cause)
        if cause is error and means is ErrorClass.CONFIGURATION:
            topic = topic or self.refused_topic
        if means is ErrorClass.FENCED:
            # The client calls its own transaction time-out a fencing: it is one only within the time-out.
            return self._timed_out() if self._is_old() else fenced(f"{cause.name()}: {cause.str()}")
        # A refusal that comes as a delivery report is the brokers'; the client's own is raised by the call.
        failure = translate_error(cause, doing, topic=topic, by_broker=self.watch.undelivered is not None)
        if means in {ErrorClass.CONFIGURATION, ErrorClass.REJECTED, ErrorClass.FATAL}:
            return failure
        is_old = self._is_old()
        return SendAgainError(failure, counted=not (means is ErrorClass.BROKERS_AWAY or is_old), outlived=is_old)

    def _done(self, call: Callable[[], None], doing: str) -> bool:
        try:
            call_client(call)
        except call_errors() as failure:
            error = error_in(failure)
            if classify_error(error) is not ErrorClass.SAME_CALL_AGAIN:
                raise self.explained(error, doing) from failure
            self._wait(error)
            return False
        return True

    def _wait(self, error: KafkaErrorLike) -> None:
        outstanding = len(self.producer)
        if outstanding < self.outstanding:
            self.broker_wait.reset()
        self.outstanding = outstanding
        self.broker_wait.check(self.watch.last_error(error))

    def _is_old(self) -> bool:
        return self.began is not None and self.clock() - self.began >= self.transaction_timeout_seconds

    def _timed_out(self) -> SendAgainError:
        return SendAgainError(
            RetriableError(
                "a transaction stayed open longer than transaction.timeout.ms "
                f"({self.transaction_timeout_seconds:.0f} s)",
                next_step="send fewer records in a transaction (publish.transaction_records), or raise "
                "transaction.timeout.ms of the connection",
            ),
            counted=False,
            outlived=True,
        )


def _larger_than_queue(topic: str) -> RejectedError:
    return RejectedError(
        f"a record to topic {topic} is larger than the client's whole queue",
        next_step="raise queue.buffering.max.kbytes of the Kafka connection above the largest record",
        topic=topic,
        status=2,
    )


_URN = b"urn:sdmx:"


def record_name(key: bytes | None) -> str:
    """Returns a record by its key where that is a structure's URN; other keys may hold data and are not shown."""
    return key.decode(errors="replace") if key is not None and key.startswith(_URN) else "a record"


def naming_largest(refused: RejectedError, rows: pa.RecordBatch) -> RejectedError:
    """Returns the client's refusal of one of these rows, with the largest of them, because the client names none."""
    sizes = pc.add(_lengths(rows, "key"), _lengths(rows, "value"))
    size = pc.max(sizes).as_py()
    index = pc.index(sizes, size).as_py()
    name = record_name(rows.column("key")[index].as_py())
    return RejectedError(
        f"{refused.message}; the largest is {name} with {size} bytes",
        next_step=refused.next_step,
        **{**refused.context, "topic": str(rows.column("topic")[index].as_py())},
    )


def _lengths(rows: pa.RecordBatch, name: str) -> pa.Array[pa.Int64Scalar]:
    return pc.binary_length(cast("pa.BinaryArray", rows.column(name))).cast(pa.int64()).fill_null(0)


_LOG: Final = logging.getLogger(__name__)

# Short enough that an answer on a callback (a wrong password) is seen soon; a call that timed out is called again.
_CALL_SECONDS = 2.0
# A listing of 10,000 topics takes 0.14 s.
_LISTING_SECONDS = 10.0
_TOPICS_ASKED_FOR_SINGLY = 50
_GOODBYE_SECONDS = 5.0
ABORTED_KEY = b"contexture: aborted"
"""The key of the record that goes to a partition to abort what is undecided there (compacted topics want one)."""

# The defaults of `produce`, and which argument receives the delivery report: the client uses `on_delivery` only where
# no `callback` is passed, and None counts as one.
_DEFAULTS: Final[Row] = (None, None, None, -1, None, None, 0, None)
_CALLBACK: Final = 4
# Reports of records follow the failure of their transaction at once.
_REPORT_SECONDS: Final = 5.0
_REPORT_POLL_SECONDS: Final = 0.05
_DELIVERY_SECONDS: Final = 5.0


class ProducerSession:
    """A producer from its first to its last call; the sessions of one sending share their `BrokerWait`.

    Attributes:
        is_uncertain: a request to end a transaction may be under way still, and would end the next one: nothing more
            may be sent with this client. A new one is safe: brokers give it a higher epoch.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        watch: ClientCallbacks,
        broker_wait: BrokerWait,
        *,
        ledger_topic: str,
        transaction_timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._watch = watch
        self._ledger_topic = ledger_topic
        self._clock = clock
        self._knows_all_topics = False
        self.is_uncertain = False
        self._calls = ProducerCalls(producer, watch, broker_wait, transaction_timeout_seconds, clock)

    def initialise(self, topics: int = 0) -> None:
        """Fences earlier senders of this shard and ends what they left open; lists all topics if many are expected.

        Raises:
            KafkaConfigurationError: refused (user, TLS, transactional id, time-out above the brokers').
            FencedError: another sender did the same later.
            BrokersAwayError: the brokers stayed away.
        """
        connect(self._producer, self._ledger_topic, _CALL_SECONDS)
        # That was answered by the address given; the second answer is the broker's own. Without it, every other start
        # finds no broker connected and sleeps for half a second.
        if not self.connect_to_brokers(topics):
            connect(self._producer, self._ledger_topic, _CALL_SECONDS)
        self._calls.until_done(lambda: self._producer.init_transactions(_CALL_SECONDS), "starting the sender")

    def connect_to_brokers(self, topics: int) -> bool:
        """Lists all topics before the client receives records for that many; returns whether it did.

        Otherwise the client queries each topic when its first record comes, while the record waits: of 10,000 records
        for 1,000 topics, a commit took four times as long.
        """
        if topics <= _TOPICS_ASKED_FOR_SINGLY or self._knows_all_topics:
            return False
        connect(self._producer, None, _LISTING_SECONDS)
        self._knows_all_topics = True
        return True

    def begin(self) -> None:
        """Starts a transaction (a local call).

        Raises:
            DefectError: the end of the one before is uncertain.
        """
        if self.is_uncertain:
            raise DefectError(
                "a transaction began while the end of the previous one was uncertain",
                next_step="clear the task, and report this",
            )
        self._calls.began = self._clock()
        self._calls.once(self._producer.begin_transaction, "beginning a transaction")

    def produce(self, rows: pa.RecordBatch, headers: Headers) -> None:
        """Hands rows of the open transaction to the client; waits while its queue is full.

        Raises:
            RejectedError: the client refuses a record; nothing of the transaction may be committed.
        """
        when_full, refused = self._calls.when_full, self._calls.remember_refused
        try:
            self._calls.once(lambda: produce_rows(self._producer, rows, headers, when_full, refused), "sending records")
        except RejectedError as refused:
            raise naming_largest(refused, rows) from refused

    def produce_alone(self, row: Row, refused: Callable[[RejectedError], None]) -> None:
        """Hands one record to a client that sends each in a batch of its own.

        Args:
            row: arguments of the client's `produce`.
            refused: receives the error, now or later in the transaction, of a record that can never be sent.
                Nothing of the transaction may be committed then.

        Raises:
            RejectedError: another record of the transaction was refused, or this one is larger than the queue.
        """
        topic = str(row[0])

        def reported(error: KafkaErrorLike | None, message: MessageLike) -> None:
            self._watch.on_delivery(error, message)
            if error is not None and classify_error(error) is ErrorClass.REJECTED:
                refused(_rejected(error, topic, by_broker=True))

        call: Row = (*row, *_DEFAULTS[len(row) :])
        call = (*call[:_CALLBACK], reported, *call[_CALLBACK + 1 :])
        try:
            call_client(lambda: self._producer.produce(*call))  # type: ignore[arg-type]
        except BufferError:
            self._calls.once(lambda: self._calls.when_full(call), "sending a record")
        except call_errors() as failure:
            error = error_in(failure)
            if classify_error(error) is not ErrorClass.REJECTED:
                self._calls.remember_refused(topic)
                raise self._calls.explained(error, "sending a record") from failure
            refused(_rejected(error, topic, by_broker=False))
        self._calls.take_reports()

    def await_reports(self, enough: Callable[[], bool]) -> None:
        """Lets reports on records of a failed transaction come in, until they are enough or no more are to come."""
        until = self._clock() + _REPORT_SECONDS
        while not enough() and len(self._producer) and self._clock() < until:
            self._calls.take_reports(_REPORT_POLL_SECONDS)

    def produce_one(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        """Hands one record to the client (the ledger's row)."""
        row: Row = (topic, value, key, partition)
        try:
            self._calls.once(lambda: self._producer.produce(topic, value, key, partition), "sending the ledger's row")
        except BufferError:
            self._calls.once(lambda: self._calls.when_full(row), "sending the ledger's row")

    def deliver(self) -> None:
        """Waits until brokers have what was produced, so that the ledger's row is never there before its records.

        It waits 5 s at most: what keeps records back for longer, `commit` waits for or says.
        """
        self._calls.await_delivery(_DELIVERY_SECONDS)

    def commit(self) -> None:
        """Delivers what is outstanding and makes the transaction visible.

        Raises:
            SendAgainError: the transaction did not happen, or no one knows: the ledger does.
            FencedError: another sender took over.
            RejectedError: a record can never be sent.
            KafkaConfigurationError: a topic is missing or forbidden.
        """
        self._end(lambda: self._producer.commit_transaction(_CALL_SECONDS), "committing a transaction")

    def abort_in(self, places: Sequence[Place], mark: bytes) -> None:
        """Aborts a transaction in some partitions; whatever this producer's id has undecided there is aborted with it.

        A partition belongs to a transaction once a record goes there: it gets one that is aborted. Its value is `mark`,
        by which its sender is known.

        Raises:
            SendAgainError, FencedError, KafkaConfigurationError: as of `commit`.
        """
        self.begin()
        for topic, partition in places:
            self.produce_one(topic, key=ABORTED_KEY, value=mark, partition=partition)
        self._calls.await_empty("aborting a transaction")
        self._end(lambda: self._producer.abort_transaction(_CALL_SECONDS), "aborting a transaction")

    def _end(self, call: Callable[[], None], doing: str) -> None:
        self._calls.take_reports()
        self._watch.begin_end()
        self._calls.until_done(call, doing)
        self._calls.began = None
        # The client logs an answer before the call returns, and passes its log on when reports are taken.
        self._calls.take_reports()
        self.is_uncertain = not self._watch.ended_at_once
        if self.is_uncertain:
            _LOG.warning(
                "%s: the brokers responded to the client's requests with %s; a copy may still arrive, so the rest is "
                "sent with a new client",
                doing,
                ", ".join(self._watch.ends) or "nothing that is known",
            )

    def close(self) -> None:
        """Throws the producer away; an open transaction is aborted so that it holds back no reader."""
        self._calls.close(_GOODBYE_SECONDS)


def _rejected(error: KafkaErrorLike, topic: str, *, by_broker: bool) -> RejectedError:
    return cast(RejectedError, translate_error(error, "sending a record", topic=topic, by_broker=by_broker))


def open_session(
    settings: ClientSettings,
    transactional_id: str,
    broker_wait: BrokerWait,
    *,
    ledger_topic: str,
    delivered: Delivered | None = None,
    open_producer: OpenProducer = transactional_producer,
    clock: Callable[[], float] = time.monotonic,
) -> ProducerSession:
    """Returns a session that is not connected yet; its caller closes it.

    `ledger_topic` gets the transactions' last row; `delivered` receives each record that a broker has taken or not.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    watch = ClientCallbacks()
    watch.delivered = delivered
    return ProducerSession(
        open_producer(settings, transactional_id, watch),
        watch,
        broker_wait,
        ledger_topic=ledger_topic,
        transaction_timeout_seconds=settings.transaction_timeout_seconds,
        clock=clock,
    )
