"""A partition's log: records, markers, the last stable offset, and which producers may write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

Headers = tuple[tuple[str, bytes | None], ...]

OPEN: Final = "open"
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"


@dataclass(slots=True)
class LogRecord:
    """A record as a log holds it; `fate` is that of its transaction, `leader_epoch` its partition's of then."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    producer: int
    epoch: int
    at: float
    fate: str = OPEN
    leader_epoch: int = 0


@dataclass(slots=True)
class ProducerState:
    """What a partition knows of a producer's id."""

    epoch: int
    sequence: int = -1


@dataclass(slots=True)
class Batch:
    """Records of one producer for one partition, in a request."""

    producer: int
    epoch: int
    first_sequence: int
    rows: list[tuple[bytes | None, bytes | None, Headers]]


@dataclass(slots=True)
class Partition:
    """One of a topic.

    Attributes:
        topic, number: which.
        is_led: whether it has a leader.
        start: the first offset that is still there.
        end: the offset after the last record or marker.
        open: where each producer's undecided records begin.
        leader_epoch: raised when its leader is lost, and when it gets one again.
    """

    topic: str
    number: int
    is_led: bool = True
    start: int = 0
    end: int = 0
    records: list[LogRecord] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    producers: dict[int, ProducerState] = field(default_factory=dict)
    leader_epoch: int = 0

    @property
    def place(self) -> tuple[str, int]:
        """Topic and number."""
        return self.topic, self.number

    @property
    def stable_end(self) -> int:
        """The last stable offset: up to there, the fate of every record is known."""
        return min(self.open.values(), default=self.end)

    def has_ongoing(self, producer: int, epoch: int) -> bool:
        """Returns whether a producer of that epoch has undecided records here: then brokers ask no coordinator."""
        return producer in self.open and self.producers[producer].epoch == epoch

    def append(self, batch: Batch, now: float) -> str:
        """Appends records; gives the name of an error, or NO_ERROR."""
        state = self.producers.get(batch.producer)
        if state is not None and batch.epoch < state.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if state is None or batch.epoch > state.epoch:
            if batch.first_sequence != 0 and state is not None:
                return "OUT_OF_ORDER_SEQUENCE_NUMBER"
            state = self.producers[batch.producer] = ProducerState(batch.epoch)
            state.sequence = batch.first_sequence - 1
        if batch.first_sequence + len(batch.rows) - 1 <= state.sequence:
            return "NO_ERROR"  # It is there already: the answer to its first try was lost.
        if batch.first_sequence != state.sequence + 1:
            return "OUT_OF_ORDER_SEQUENCE_NUMBER"
        self.open.setdefault(batch.producer, self.end)
        for key, value, headers in batch.rows:
            record = LogRecord(self.end, key, value, headers, batch.producer, batch.epoch, now)
            record.leader_epoch = self.leader_epoch
            self.records.append(record)
            self.end += 1
        state.sequence += len(batch.rows)
        return "NO_ERROR"

    def mark(self, producer: int, epoch: int, *, committed: bool) -> None:
        """Appends a marker: it decides about all that the producer has undecided here, whichever transaction's."""
        state = self.producers.setdefault(producer, ProducerState(epoch))
        if epoch < state.epoch:
            return
        if epoch > state.epoch:
            self.producers[producer] = ProducerState(epoch)
        first = self.open.pop(producer, None)
        if first is not None:
            for record in reversed(self.records):
                if record.offset < first:
                    break
                if record.producer == producer and record.fate == OPEN:
                    record.fate = COMMITTED if committed else ABORTED
        self.end += 1

    def visible(self) -> list[LogRecord]:
        """Returns what a read-committed reader gets from the beginning."""
        stable = self.stable_end
        return [each for each in self.records if each.fate == COMMITTED and each.offset < stable]

    def delete_before(self, offset: int) -> None:
        """As DeleteRecords and retention do."""
        self.start = max(self.start, min(offset, self.stable_end))
        self.records = [each for each in self.records if each.offset >= self.start]

    def compact(self) -> None:
        """Keeps the last committed record of each key, and all that is undecided."""
        stable = self.stable_end
        newest = {each.key: each.offset for each in self.records if each.fate == COMMITTED and each.offset < stable}
        self.records = [
            each
            for each in self.records
            if each.offset >= stable or (each.fate == COMMITTED and newest[each.key] == each.offset)
        ]
