"""Knowing the moment when a send is under way: its first committed transaction is in the ledger."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings


@dataclass(frozen=True, slots=True)
class Seen:
    """A ledger entry as a watcher saw it."""

    outbox: str
    shard: int
    position: int


class LedgerWatch:
    """Follows the ledger of a publication from its end as it was when the watch was made."""

    def __init__(self, settings: ClientSettings, publication: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._consumer = Consumer(settings.consumer())
        topic = f"contexture.ledger.{publication}"
        partitions = self._consumer.list_topics(topic, timeout=60).topics[topic].partitions
        places = [TopicPartition(topic, number) for number in partitions]
        for place in places:
            place.offset = self._consumer.get_watermark_offsets(place, timeout=60)[1]
        self._consumer.assign(places)

    def await_first_transaction(self, *, timeout_seconds: float) -> Seen:
        """The next entry that moves a position on.

        Raises:
            RetriableError: none came in time.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            while time.monotonic() < deadline:
                message = self._consumer.poll(0.2)
                if message is None or message.error() is not None:
                    continue
                entry = json.loads(message.value() or b"{}")
                if entry.get("position"):
                    return Seen(entry["outbox"], message.partition() or 0, entry["position"])
        finally:
            self._consumer.close()
        raise RetriableError("nothing was sent in time", next_step="look at the publish task in the UI")
