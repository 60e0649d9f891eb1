"""librdkafka's consumer of named partitions: committed records or all, and where a partition ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError

from tools.simulation.events import wall_seconds
from tools.simulation.partitions import COMMITTED, LogRecord, Partition
from tools.simulation.producer import kafka_error

if TYPE_CHECKING:
    from tools.simulation.clients import World

Place = tuple[str, int]

_LOOK_SECONDS = 0.02
_MOST = 500


class SimulatedMessage:
    """A record, or an error in its place."""

    def __init__(self, place: Place, offset: int, record: LogRecord | None, error: KafkaError | None = None) -> None:
        self._place, self._offset, self._record, self._error = place, offset, record, error

    def topic(self) -> str:
        """Of which topic."""
        return self._place[0]

    def partition(self) -> int:
        """Of which partition."""
        return self._place[1]

    def offset(self) -> int:
        """Returns where it is."""
        return self._offset

    def error(self) -> KafkaError | None:
        """None for a record."""
        return self._error

    def key(self) -> bytes | None:
        """Returns the record's."""
        return None if self._record is None else self._record.key

    def value(self) -> bytes | str | None:
        """Returns the record's, or the text of the error."""
        if self._record is None:
            return None if self._error is None else self._error.str()
        return self._record.value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Returns the record's."""
        return list(self._record.headers) if self._record and self._record.headers else None

    def timestamp(self) -> tuple[int, int]:
        """Kind and milliseconds."""
        return (1, int(wall_seconds(self._record.at) * 1000)) if self._record else (0, -1)


class SimulatedConsumer:
    """In the place of `confluent_kafka.Consumer`.

    Args:
        world: the run.
        options: of the client.
    """

    def __init__(self, world: World, options: dict[str, Any]) -> None:
        assert world.events.current is not None
        self._world = world
        self._process = world.events.current
        self._is_committed = options.get("isolation.level", "read_committed") == "read_committed"
        self._resets = str(options.get("auto.offset.reset", "earliest")) != "error"
        self._positions: dict[Place, int] = {}
        self._ended_at: dict[Place, int] = {}
        self._buffer: deque[SimulatedMessage] = deque()

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        """Returns the topics there are."""
        self._process.call(f"consumer: list_topics({topic or ''})")
        return self._world.metadata(topic)

    def assign(self, places: Sequence[Any]) -> None:
        """Which partitions, and from where."""
        self._positions = {(each.topic, each.partition): int(each.offset) for each in places}
        self._ended_at = {}
        self._buffer.clear()

    def poll(self, timeout: float = -1) -> SimulatedMessage | None:
        """Returns the next record or error; None when nothing came in time."""
        self._fill(timeout)
        return self._buffer.popleft() if self._buffer else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[SimulatedMessage]:
        """Up to so many of them."""
        self._fill(timeout)
        return [self._buffer.popleft() for _ in range(min(num_messages, len(self._buffer)))]

    def get_watermark_offsets(self, place: Any, timeout: float | None = None, cached: bool = False) -> tuple[int, int]:
        """Returns the first and the last offset of a partition."""
        self._process.call("consumer: get_watermark_offsets")
        found = self._world.brokers.partition((place.topic, place.partition))
        assert found is not None
        return found.start, found.stable_end if self._is_committed else found.end

    def close(self) -> None:
        """Nothing is left behind."""

    def _fill(self, timeout: float) -> None:
        if self._buffer:
            return
        self._process.call("consumer: fetch")
        until = self._world.events.now + timeout
        while not self._fetch() and self._world.events.now < until:
            self._process.sleep(min(_LOOK_SECONDS, until - self._world.events.now))

    def _fetch(self) -> bool:
        for place in self._positions:
            partition = self._world.brokers.partition(place)
            if partition is None:
                continue
            self._world.brokers.strike("Fetch", place)
            if partition.is_led:
                self._read(place, partition)
        return bool(self._buffer)

    def _read(self, place: Place, partition: Partition) -> None:
        end = partition.stable_end if self._is_committed else partition.end
        position = self._positions[place]
        if position == OFFSET_BEGINNING:
            position = partition.start
        if not partition.start <= position <= partition.end:
            if not self._resets:
                self._buffer.append(SimulatedMessage(place, position, None, kafka_error("_AUTO_OFFSET_RESET")))
                return
            position = partition.start
        count = 0
        for record in partition.records:
            if record.offset < position:
                continue
            if record.offset >= end or count >= _MOST:
                break
            if record.fate == COMMITTED or not self._is_committed:
                self._buffer.append(SimulatedMessage(place, record.offset, record))
                count += 1
            position = record.offset + 1
        else:
            position = max(position, end)
        position = max(position, end) if count < _MOST else position
        self._positions[place] = position
        if position >= end and self._ended_at.get(place) != position:
            self._ended_at[place] = position
            self._buffer.append(SimulatedMessage(place, position, None, kafka_error("_PARTITION_EOF")))
