"""Topics in memory, read as a verification or a rebuilding reads those of Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from builders.outboxes import Record
from contexture.kafka import TopicRecord
from contexture.operations.verification.topics import TopicSnapshot
from contexture.sending import LedgerEntry


class MemoryTopics:
    """Topics of one partition each; `when_cut` is called between the cut and the reading."""

    def __init__(self) -> None:
        self.log: list[TopicRecord] = []
        self._next = 0
        self.ledger: dict[int, LedgerEntry] = {}
        self.removed: frozenset[str] = frozenset()
        self.when_cut: Callable[[], object] = lambda: None

    def send(
        self, records: Sequence[Record], *, headers: tuple[tuple[str, bytes], ...] = (), partition: int = 0
    ) -> None:
        """Records as they come to lie in their topics."""
        for topic, key, value in records:
            self.log.append(TopicRecord(topic, partition, self._next, key, value, headers, 0))
            self._next += 1

    def cut(self, topics: Iterable[str]) -> TopicSnapshot:
        """Where they stand now."""
        there = {(record.topic, record.partition) for record in self.log}
        wanted = sorted(set(topics))
        ends = {place: self._next for place in sorted(there) if place[0] in wanted}
        missing = tuple(topic for topic in wanted if topic not in {name for name, _ in there})
        cut = TopicSnapshot(ends, self.removed, missing, dict(self.ledger))
        self.when_cut()
        return cut

    def records(self, cut: TopicSnapshot) -> Iterator[TopicRecord]:
        """What is in them up to a cut."""
        return (each for each in self.log if each.offset < cut.ends.get((each.topic, each.partition), 0))
