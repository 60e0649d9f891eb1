"""Reading one partition of the ledger, to an end that is certain."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from contexture.kafka.clients import connect, reader
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.unreadable import raise_unreadable
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from contexture.kafka.ports import KafkaErrorLike

_CALL_SECONDS = 2.0
_STABLE_POLL_SECONDS = 0.05
# How long a transaction on the ledger is given to be settled, before it is looked at.
_GRACE_SECONDS = 5.0
# The wanted row is nearly always among the last few: only when it is not, more is read.
_FIRST_WINDOW = 64
_WINDOW_GROWTH = 64


class LedgerReader:
    """Finds the last committed value of a key in a partition.

    Args:
        settings: the connection.
        admin: of the same connection.
        patience: how long brokers are waited for.
    """

    def __init__(self, settings: ClientSettings, admin: TopicAdmin, patience: Patience) -> None:
        self._settings = settings
        self._admin = admin
        self._patience = patience
        self._watch = ClientWatch()

    def last_value(self, topic: str, partition: int, key: bytes, *, settled: bool) -> bytes | None:
        """The last committed value of `key` in a partition, None when there is none.

        Args:
            topic: the ledger.
            partition: the shard.
            key: the shard's key.
            settled: wait until no transaction that began before this call is open, so that nothing committed is
                hidden behind it. A transaction of this key that nobody will settle any more is not waited for.
        """
        place = (topic, partition)
        end = self._settled_end(place, key) if settled else self._end(place, committed=True)
        found = self._last_seen(place, key, end)
        return None if found is None else found[1]

    def unseen_values(self, topic: str, partition: int, key: bytes) -> list[bytes]:
        """The values of `key` that follow the last one that readers see, in their order: undecided ones and aborted."""
        place = (topic, partition)
        end = self._end(place, committed=False)
        seen = self._last_seen(place, key, self._end(place, committed=True))
        start = 0 if seen is None else seen[0] + 1
        # What follows a committed row is its marker.
        if start >= end or (seen is not None and end - start == 1):
            return []
        with closing(reader(self._settings, self._watch, isolation="read_uncommitted")) as consumer:
            return [value for _, value in self._between(consumer, place, start, end, key)]

    def _last_seen(self, place: tuple[str, int], key: bytes, end: int) -> tuple[int, bytes] | None:
        """Offset and value."""
        window = _FIRST_WINDOW
        with closing(reader(self._settings, self._watch)) as consumer:
            while end > 0:
                found = self._between(consumer, place, max(0, end - window), end, key)
                if found or window >= end:
                    return found[-1] if found else None
                window *= _WINDOW_GROWTH
        return None

    def hidden_values(self, topic: str, partition: int, key: bytes) -> list[bytes]:
        """The values of `key` that a partition hides behind its last stable offset, in their order."""
        place = (topic, partition)
        end = self._end(place, committed=False)
        stable = self._end(place, committed=True)
        if stable >= end:
            return []
        with closing(reader(self._settings, self._watch, isolation="read_uncommitted")) as consumer:
            return [value for _, value in self._between(consumer, place, stable, end, key)]

    def _end(self, place: tuple[str, int], *, committed: bool) -> int:
        return self._admin.ends([place], committed=committed)[place]

    def _settled_end(self, place: tuple[str, int], key: bytes) -> int:
        """The end of now, once the last stable offset has come up to it, or once it is known that it never will."""
        target = self._end(place, committed=False)
        started, looks_at = self._patience.now(), _GRACE_SECONDS
        while (end := self._end(place, committed=True)) < target:
            waited = self._patience.now() - started
            # The key has one sender, and that one has none open: a row of it that is hidden stays so.
            if waited >= looks_at and self.hidden_values(*place, key):
                return end
            looks_at = max(looks_at, waited + _GRACE_SECONDS) if waited >= looks_at else looks_at
            time.sleep(_STABLE_POLL_SECONDS)
            # Answered, so not the brokers' fault; but a hanging transaction would hold us here for ever.
            self._patience.waited_since(started, "an earlier transaction on the ledger is not settled")
        return end

    def _between(
        self, consumer: Consumer, place: tuple[str, int], start: int, end: int, key: bytes
    ) -> list[tuple[int, bytes]]:
        from confluent_kafka import KafkaError, TopicPartition

        connect(consumer, place[0], _CALL_SECONDS)
        consumer.assign([TopicPartition(*place, start)])
        found: list[tuple[int, bytes]] = []
        while True:
            message = consumer.poll(_CALL_SECONDS)
            error = None if message is None else message.error()
            if message is None:
                self._watch.raise_refusal("reading the ledger")
                self._patience.waited("the ledger is not answered")
            elif error is None:
                if message.key() == key:
                    found.append((int(message.offset() or 0), bytes(message.value() or b"")))
            elif error.code() == KafkaError._PARTITION_EOF:
                # A broker that has just come back may know of less at first.
                if int(message.offset() or 0) >= end:
                    self._patience.relieve()
                    return found
            else:
                self._wait_or_raise(error, message)

    def _wait_or_raise(self, error: KafkaErrorLike, message: Message) -> None:
        self._watch.raise_refusal("reading the ledger")
        raise_unreadable(error, message, "reading the ledger")
        self._patience.waited(self._watch.last_words(error))
