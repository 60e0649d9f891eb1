"""Follows a run live with confluent-kafka's own consumers, and records its history; shares no code with Contexture."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tools.faults.history import Cut, History, Place
from tools.faults.loads import MARK
from tools.faults.reading import consumer, found

_PAUSE_SECONDS = 0.05
_CUT_SECONDS = 10.0
_CALL_SECONDS = 5.0
_JOIN_SECONDS = 60.0


class Follower:
    """Reads topics in a thread of its own, read-committed and read-uncommitted, and cuts again and again.

    Args:
        bootstrap: the Kafka.
        topics: there already, without a record.
        pace_seconds: from one cut to the next, once it was started.
    """

    def __init__(self, bootstrap: str, topics: Sequence[str], *, pace_seconds: float = _PAUSE_SECONDS) -> None:
        self.history = History()
        self._pace_seconds = pace_seconds
        self._committed = consumer(bootstrap, "read_committed")
        self._uncommitted = consumer(bootstrap, "read_uncommitted")
        self._places = _places(self._committed, topics)
        self._readable: dict[Place, int] = dict.fromkeys(self._places, 0)
        self._written: dict[Place, int] = dict.fromkeys(self._places, 0)
        for each in (self._committed, self._uncommitted):
            each.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in self._places])
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def cut(self) -> Cut | None:
        """Looks at all partitions now.

        Returns:
            The cut, which the history has too; None where brokers did not answer in time.
        """
        with self._lock:
            try:
                return self._cut()
            except KafkaException:
                return None

    def start(self) -> None:
        """Begins to cut at its pace."""
        self._thread.start()

    def close(self) -> None:
        """Ends; its history stays."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)
        with self._lock:
            self._committed.close()
            self._uncommitted.close()

    def _run(self) -> None:
        while not self._over.wait(self._pace_seconds):
            self.cut()

    def _cut(self) -> Cut | None:
        deadline = time.monotonic() + _CUT_SECONDS
        seen = len(self.history.visible)
        high, stable = self._ends(self._uncommitted), self._ends(self._committed)
        while self._is_short(self._readable, stable) or self._is_short(self._written, high):
            if time.monotonic() > deadline:
                return None
            self._read(self._committed, self._readable)
            self._read(self._uncommitted, self._written)
        cut = Cut(seen, high, stable, len(self.history.visible), len(self.history.appended))
        self.history.cuts.append(cut)
        return cut

    def _ends(self, reader: Consumer) -> dict[Place, int]:
        """Returns where each partition ends for a reader: the last stable offset for a read-committed one."""
        return {place: reader.get_watermark_offsets(TopicPartition(*place), _CALL_SECONDS)[1] for place in self._places}

    @staticmethod
    def _is_short(reached: dict[Place, int], ends: dict[Place, int]) -> bool:
        return any(reached[place] < end for place, end in ends.items())

    def _read(self, reader: Consumer, reached: dict[Place, int]) -> None:
        for message in reader.consume(500, 0.02):
            error, place = message.error(), (str(message.topic()), int(message.partition() or 0))
            offset = int(message.offset() or 0)
            if error is None:
                reached[place] = max(reached[place], offset + 1)
                if reader is self._committed:
                    self.history.visible.append(found(message, place))
                else:
                    mark = dict(message.headers() or ()).get(MARK, b"")
                    self.history.appended.append(mark if isinstance(mark, bytes) else b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                reached[place] = max(reached[place], offset)


def _places(client: Consumer, topics: Sequence[str]) -> list[Place]:
    """Returns the partitions of topics that were just made: each broker learns of them by itself."""
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:
        listed = client.list_topics(timeout=_CALL_SECONDS).topics
        if all(topic in listed and listed[topic].partitions for topic in topics):
            return [(topic, number) for topic in topics for number in listed[topic].partitions]
        if time.monotonic() > deadline:
            raise TimeoutError(f"no broker lists all of {len(topics)} topics")
        time.sleep(_PAUSE_SECONDS)
