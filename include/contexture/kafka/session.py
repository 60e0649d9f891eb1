"""One living sender of one shard: a producer that has fenced all earlier ones, and the calls of its transactions."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, cast

import pyarrow as pa

from contexture.errors import DefectError, RejectedError
from contexture.kafka.clients import asked, call_errors, connect, error_in
from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.patience import Patience
from contexture.kafka.ports import Headers, KafkaErrorLike, MessageLike, TransactionalProducer
from contexture.kafka.producer_calls import ProducerCalls
from contexture.kafka.refused import naming_largest
from contexture.kafka.rows import Row, produce_rows
from contexture.kafka.watch import ClientWatch

_LOG: Final = logging.getLogger(__name__)

# Short enough that an answer on a callback (a wrong password) is seen soon; a call that timed out is called again.
_CALL_SECONDS = 2.0
# A listing of 10,000 topics takes 0.14 s.
_LISTING_SECONDS = 10.0
_TOPICS_ASKED_FOR_SINGLY = 50
_GOODBYE_SECONDS = 5.0
ABORTED_KEY = b"contexture: aborted"
"""The key of the record that goes to a partition to abort what is undecided there (compacted topics want one)."""

# What `produce` takes where nothing is said, and which of it is told of the delivery: the client looks at `on_delivery`
# only where no `callback` is given, and None is one.
_DEFAULTS: Final[Row] = (None, None, None, -1, None, None, 0, None)
_CALLBACK: Final = 4
# Reports of records follow the failure of their transaction at once.
_REPORT_SECONDS: Final = 5.0
_REPORT_POLL_SECONDS: Final = 0.05
_DELIVERY_SECONDS: Final = 5.0


class Session:
    """A producer from its first to its last call.

    Args:
        producer: a new one.
        watch: what its callbacks report to.
        patience: how long brokers are waited for; shared by the sessions of one sending.
        ledger_topic: where the transactions' last row goes.
        transaction_timeout_seconds: after how long the broker gives a transaction up.
        clock: monotonic seconds.

    Attributes:
        is_uncertain: a request to end a transaction may be under way still, and would end the next one: nothing more
            may be sent with this client. A new one is safe: brokers give it a higher epoch.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        watch: ClientWatch,
        patience: Patience,
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
        self._calls = ProducerCalls(
            producer, watch, patience, transaction_timeout_seconds=transaction_timeout_seconds, clock=clock
        )

    def initialise(self, topics: int = 0) -> None:
        """Fences earlier senders of this shard and settles what they left open.

        Args:
            topics: for how many there will be records at once, as far as is known (`meet`).

        Raises:
            KafkaConfigurationError: refused (user, TLS, transactional id, time-out above the brokers').
            FencedError: another sender did the same later.
            BrokersAwayError: the brokers stayed away.
        """
        connect(self._producer, self._ledger_topic, _CALL_SECONDS)
        # That was answered by the address given; the second answer is the broker's own. Without it, every other start
        # finds no broker connected and sleeps for half a second.
        if not self.meet(topics):
            connect(self._producer, self._ledger_topic, _CALL_SECONDS)
        self._calls.until_done(lambda: self._producer.init_transactions(_CALL_SECONDS), "starting the sender")

    def meet(self, topics: int) -> bool:
        """Lets the client learn where all topics are, before it is given records for that many; True if it asked.

        Otherwise it asks for each of them when its first record comes, while the record waits: of 10,000 records for
        1,000 topics, a commit took four times as long.
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
                "a transaction was begun while the end of the one before it was uncertain",
                next_step="clear the task, and report this",
            )
        self._calls.began = self._clock()
        self._calls.once(self._producer.begin_transaction, "beginning a transaction")

    def produce(self, rows: pa.RecordBatch, headers: Headers) -> None:
        """Hands rows of the open transaction to the client; waits while its queue is full.

        Raises:
            RejectedError: the client refuses a record; nothing of the transaction may be committed.
        """
        when_full, refused = self._calls.when_full, self._calls.refused
        try:
            self._calls.once(lambda: produce_rows(self._producer, rows, headers, when_full, refused), "sending records")
        except RejectedError as refused:
            raise naming_largest(refused, rows) from refused

    def produce_alone(self, row: Row, refused: Callable[[RejectedError], None]) -> None:
        """Hands one record to a client that sends each in a batch of its own.

        Args:
            row: arguments of the client's `produce`.
            refused: is told, now or while the transaction goes on, that this record can never be sent. Nothing of the
                transaction may be committed then.

        Raises:
            RejectedError: another record of the transaction was refused, or this one is larger than the queue.
        """
        topic = str(row[0])

        def reported(error: KafkaErrorLike | None, message: MessageLike) -> None:
            self._watch.on_delivery(error, message)
            if error is not None and meaning(error) is Meaning.REJECTED:
                refused(_rejected(error, topic, by_broker=True))

        call: Row = (*row, *_DEFAULTS[len(row) :])
        call = (*call[:_CALLBACK], reported, *call[_CALLBACK + 1 :])
        try:
            asked(lambda: self._producer.produce(*call))  # type: ignore[arg-type]
        except BufferError:
            self._calls.once(lambda: self._calls.when_full(call), "sending a record")
        except call_errors() as failure:
            error = error_in(failure)
            if meaning(error) is not Meaning.REJECTED:
                self._calls.refused(topic)
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
            SendAgainError: the transaction did not happen, or nobody knows: the ledger does.
            FencedError: another sender took over.
            RejectedError: a record can never be sent.
            KafkaConfigurationError: a topic is missing or forbidden.
        """
        self._end(lambda: self._producer.commit_transaction(_CALL_SECONDS), "committing a transaction")

    def abort_in(self, places: Sequence[tuple[str, int]], mark: bytes) -> None:
        """Aborts a transaction in some partitions; whatever this producer's id has undecided there is aborted with it.

        A partition belongs to a transaction once a record goes there: it gets one that is aborted.

        Args:
            places: topic and partition.
            mark: the value of that record, by which its sender is known.

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
        # The client logs an answer before the call returns, and gives its log away when it is asked for reports.
        self._calls.take_reports()
        self.is_uncertain = not self._watch.ended_at_once
        if self.is_uncertain:
            _LOG.warning(
                "%s: the client's requests were answered with %s; a copy may still be under way, so the rest is sent "
                "with a new client",
                doing,
                ", ".join(self._watch.ends) or "nothing that is known",
            )

    def close(self) -> None:
        """Throws the producer away; an open transaction is aborted so that it holds back no reader."""
        self._calls.close(_GOODBYE_SECONDS)


def _rejected(error: KafkaErrorLike, topic: str, *, by_broker: bool) -> RejectedError:
    return cast(RejectedError, translated(error, "sending a record", topic=topic, by_broker=by_broker))
