"""Calls of a producer: made again while brokers are silent, and what a failed one means with all that is known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from contexture.errors import RejectedError, RetriableError
from contexture.kafka.clients import asked, call_errors, error_in
from contexture.kafka.error_table import Meaning, fenced, meaning, translated
from contexture.kafka.failures import SendAgainError
from contexture.kafka.patience import Patience
from contexture.kafka.ports import KafkaErrorLike, TransactionalProducer
from contexture.kafka.rows import Row
from contexture.kafka.watch import ClientWatch

_FULL_QUEUE_SECONDS = 0.05
# A flush returns as soon as the queue is empty; one of a transaction that has failed never does.
_FLUSH_SECONDS = 0.5
_FATAL = "_FATAL"


class ProducerCalls:
    """Those of one producer.

    Args:
        producer: a new one.
        watch: what its callbacks report to.
        patience: how long brokers are waited for.
        transaction_timeout_seconds: after how long the broker gives a transaction up.
        clock: monotonic seconds.

    Attributes:
        began: when the open transaction did; None while none is.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        watch: ClientWatch,
        patience: Patience,
        *,
        transaction_timeout_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._producer = producer
        self._watch = watch
        self._patience = patience
        self._timeout_seconds = transaction_timeout_seconds
        self._clock = clock
        self._outstanding = 0
        self._refused_topic: str | None = None
        self.began: float | None = None

    def until_done(self, call: Callable[[], None], doing: str) -> None:
        """Makes a call again as long as it only runs out of time.

        Raises:
            BrokersAwayError: for too long.
            ContextureError, SendAgainError: it failed (`explained`).
        """
        while not self._done(call, doing):
            self.take_reports()
            self._watch.raise_refusal(doing)
        self._patience.relieve()

    def once(self, call: Callable[[], None], doing: str) -> None:
        """Makes a call.

        Raises:
            ContextureError, SendAgainError: it failed (`explained`).
        """
        try:
            asked(call)
        except call_errors() as failure:
            raise self.explained(error_in(failure), doing) from failure

    def refused(self, topic: str) -> None:
        """Notes of which topic the record is that the client did not take: its error does not say."""
        self._refused_topic = topic

    def take_reports(self, seconds: float = 0) -> None:
        """Lets callbacks be called; a fatal error is raised here by the client instead of being given to one."""
        try:
            asked(lambda: self._producer.poll(seconds))
        except call_errors() as failure:
            self._watch.on_error(error_in(failure))

    def await_empty(self, doing: str) -> None:
        """Waits until nothing is left in the client's queue.

        Raises:
            BrokersAwayError: no broker takes it.
            ContextureError, SendAgainError: a fatal error came (`explained`).
        """
        while len(self._producer):
            self.take_reports(_FULL_QUEUE_SECONDS)
            self._watch.raise_refusal(doing)
            if self._watch.fatal is not None:
                raise self.explained(self._watch.fatal, doing)
            self._patience.waited("no broker takes records", said_at_once=False)
        self._patience.relieve()

    def await_delivery(self, seconds: float) -> None:
        """Waits until nothing is left in the client's queue, a record was refused, or the seconds are over."""
        until = self._clock() + seconds
        while len(self._producer) and not self._watch.has_failed and self._clock() < until:
            try:
                asked(lambda: self._producer.flush(_FLUSH_SECONDS))
            except call_errors() as failure:
                self._watch.on_error(error_in(failure))

    def when_full(self, row: Row) -> None:
        """Hands a row, for which the queue had no room, to the client when there is some; raises what the client does.

        Raises:
            RejectedError: it is larger than the queue.
            BrokersAwayError: no broker takes records.
        """
        while True:
            outstanding = len(self._producer)
            self._producer.poll(_FULL_QUEUE_SECONDS)
            try:
                # A row holds the arguments by position; their types are lost in it.
                self._producer.produce(*row)  # type: ignore[arg-type]
            except BufferError as full:
                self._watch.raise_refusal("sending records")
                if not len(self._producer):
                    raise _larger_than_queue(str(row[0])) from full
                if len(self._producer) < outstanding:
                    self._patience.relieve()
                else:
                    self._patience.waited("no broker takes records", said_at_once=False)
            except call_errors():
                self.refused(str(row[0]))
                raise
            else:
                return

    def close(self, seconds: float) -> None:
        """Throws away what is queued, and gives an open transaction so long to be aborted."""
        with suppress(*call_errors(), RuntimeError):
            asked(self._producer.purge)
        if self.began is not None:
            with suppress(*call_errors(), RuntimeError):
                asked(lambda: self._producer.abort_transaction(seconds))

    def _learn_fatal(self) -> None:
        """Learns why a client has failed, which it says on a callback once, and to every call that begins something.

        The callback can get lost: when it is run by a call that raises, that call has been seen to fail without any
        exception (confluent-kafka 2.16).
        """
        try:
            asked(self._producer.begin_transaction)
        except call_errors() as failure:
            self._watch.on_error(error_in(failure))

    def explained(self, error: KafkaErrorLike, doing: str) -> Exception:
        """What a failed call means, with the reasons that came by callback."""
        self.take_reports()
        if error.name() == _FATAL and self._watch.fatal is None:
            self._learn_fatal()
        cause, topic = self._watch.cause(error)
        means = meaning(cause)
        if cause is error and means is Meaning.CONFIGURATION:
            topic = topic or self._refused_topic
        if means is Meaning.FENCED:
            # The client calls its own transaction time-out a fencing: it is one only within the time-out.
            return self._timed_out() if self._is_old() else fenced(f"{cause.name()}: {cause.str()}")
        # A refusal that comes as a delivery report is the brokers'; the client's own is raised by the call.
        told = translated(cause, doing, topic=topic, by_broker=self._watch.undelivered is not None)
        if means in {Meaning.CONFIGURATION, Meaning.REJECTED, Meaning.FATAL}:
            return told
        is_old = self._is_old()
        return SendAgainError(told, counted=not (means is Meaning.BROKERS_AWAY or is_old), outlived=is_old)

    def _done(self, call: Callable[[], None], doing: str) -> bool:
        try:
            asked(call)
        except call_errors() as failure:
            error = error_in(failure)
            if meaning(error) is not Meaning.SAME_CALL_AGAIN:
                raise self.explained(error, doing) from failure
            self._wait(error)
            return False
        return True

    def _wait(self, error: KafkaErrorLike) -> None:
        outstanding = len(self._producer)
        if outstanding < self._outstanding:
            self._patience.relieve()
        self._outstanding = outstanding
        self._patience.waited(self._watch.last_words(error))

    def _is_old(self) -> bool:
        return self.began is not None and self._clock() - self.began >= self._timeout_seconds

    def _timed_out(self) -> SendAgainError:
        return SendAgainError(
            RetriableError(
                f"a transaction stayed open longer than transaction.timeout.ms ({self._timeout_seconds:.0f} s)",
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
