"""A ledger that Kafka compacts within seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from contexture.kafka.admin import NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger import SenderNames

_CONFIG = {
    "cleanup.policy": "compact",
    # A segment is closed by the first record that comes later than this; only closed ones are compacted.
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}
_ROUND_SECONDS = 2.0
# The first round of a broker that is busy with much else.
_FIRST_ROUND_SECONDS = 60.0


@dataclass
class CompactingLedger:
    """The ledger of one publication."""

    settings: ClientSettings
    topic: str

    def await_round(self, *, has_more: bool = False) -> None:
        """Waits until something more was removed, but not for long: there may be nothing to remove.

        Args:
            has_more: there is something to remove; if nothing ever was, it is waited for longer.
        """
        before, began = self.removed(), time.monotonic()
        limit = _FIRST_ROUND_SECONDS if has_more and not before else _ROUND_SECONDS
        while self.removed() == before and time.monotonic() - began < limit:
            time.sleep(0.2)

    def removed(self) -> int:
        """Returns how many offsets of the topic hold nothing any more."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

        options = {**self.settings.consumer(isolation="read_uncommitted"), "enable.partition.eof": True}
        with closing(Consumer(options)) as consumer:
            consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
            rows = 0
            while True:
                message = consumer.poll(5.0)
                if message is None:
                    return 0
                error = message.error()
                if error is None:
                    rows += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    # Each transaction leaves a row and a marker.
                    return max(0, int(message.offset() or 0) - 2 * rows)


@contextmanager
def compacting_ledger(settings: ClientSettings, names: SenderNames) -> Iterator[CompactingLedger]:
    """Makes the ledger so that it is compacted all the time."""
    admin = TopicAdmin(settings, BrokerWait(60.0))
    admin.create([NewTopicOrder(names.ledger_topic, 1, 1, _CONFIG)])
    admin.await_usable({names.ledger_topic: 1})
    yield CompactingLedger(settings, names.ledger_topic)
