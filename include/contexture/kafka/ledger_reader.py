"""Reading one partition of the ledger, to an end that is certain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from contexture.kafka.clients import client_error, error_in, reader
from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.patience import Patience
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_CALL_SECONDS = 2.0
_STABLE_POLL_SECONDS = 0.05
# The wanted row is nearly always among the last few: only when it is not, more is read.
_FIRST_WINDOW = 64

T = TypeVar("T")


class LedgerReader:
    """Finds the last committed value of keys in a partition.

    Args:
        settings: the connection.
        patience: how long brokers are waited for.
    """

    def __init__(self, settings: ClientSettings, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._watch = ClientWatch()

    def last_value(self, topic: str, partition: int, key: bytes, *, settled: bool) -> bytes | None:
        """The last committed value of `key` in a partition, None when there is none.

        Args:
            topic: the ledger.
            partition: the shard.
            key: the shard's key.
            settled: wait until no transaction that began before this call is open, so that nothing committed is
                hidden behind it.
        """
        from confluent_kafka import TopicPartition

        place = TopicPartition(topic, partition)
        with closing(reader(self._settings, self._watch)) as consumer:
            low, end = self._bounds(consumer, place)
            if settled:
                end = self._stable_end(consumer, place, self._high_watermark(place))
            window = _FIRST_WINDOW
            while low < end:
                start = max(low, end - window)
                value = self._last_between(consumer, place, start, key)
                if value is not None or start == low:
                    return value
                window *= 64
        return None

    def _high_watermark(self, place: TopicPartition) -> int:
        with closing(reader(self._settings, self._watch, isolation="read_uncommitted")) as consumer:
            return self._bounds(consumer, place)[1]

    def _stable_end(self, consumer: Consumer, place: TopicPartition, target: int) -> int:
        while (end := self._bounds(consumer, place)[1]) < target:
            consumer.poll(_STABLE_POLL_SECONDS)
            self._patience.waited("a transaction of an earlier sender is still being settled")
        return end

    def _bounds(self, consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
        """Low watermark and end: with read_committed the end is the last stable offset."""
        return self._until_answered(
            lambda: consumer.get_watermark_offsets(place, timeout=_CALL_SECONDS, cached=False), consumer
        )

    def _last_between(self, consumer: Consumer, place: TopicPartition, start: int, key: bytes) -> bytes | None:
        from confluent_kafka import KafkaError, TopicPartition

        consumer.assign([TopicPartition(place.topic, place.partition, start)])
        found: bytes | None = None
        while True:
            message = consumer.poll(_CALL_SECONDS)
            if message is None:
                self._watch.raise_refusal("reading the ledger")
                self._patience.waited("the ledger is not answered")
                continue
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                self._patience.relieve()
                return found
            if error is not None:
                self._wait_or_raise(error)
            elif message.key() == key:
                found = message.value()

    def _until_answered(self, call: Callable[[], T], consumer: Consumer) -> T:
        while True:
            try:
                answer = call()
            except client_error() as failure:
                consumer.poll(0)
                self._wait_or_raise(error_in(failure))
            else:
                self._patience.relieve()
                return answer

    def _wait_or_raise(self, error: KafkaErrorLike) -> None:
        self._watch.raise_refusal("reading the ledger")
        if meaning(error) in {Meaning.CONFIGURATION, Meaning.FATAL}:
            raise translated(error, "reading the ledger")
        self._patience.waited(self._watch.last_words(error))
