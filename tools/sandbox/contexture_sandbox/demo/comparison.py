"""Is what a reader gets from Kafka what was prepared? Record by record, in the order of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import repeat
from typing import Any, Final

from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Outboxes, OutboxStatus
from contexture.storage.schemas import HEADER_PREFIX
from contexture_sandbox.demo.plain_reader import read_topics

Place = tuple[str, bytes | None]
Headers = tuple[tuple[str, bytes], ...]

_Prepared = tuple[str, bytes | None, bytes | None, Headers, Headers]
"""Topic, key, value and headers; and the header that says the time of change, where there is one."""

_TIME_HEADER: Final = "contexture_event_time"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result for one publication.

    Attributes:
        prepared: records of all concluded outboxes.
        read: records that a read-committed reader got from their topics.
        different: places (topic and key) whose sequences of records are not the same.
    """

    topics: int
    prepared: int
    read: int
    different: int

    @property
    def equal(self) -> bool:
        """Whether nothing is missing, doubled, changed or out of order."""
        return self.prepared == self.read and not self.different


class Sequences:
    """For each topic and key a digest of its records in order; without a key, of its records in any order."""

    def __init__(self) -> None:
        self.count = 0
        self._digests: dict[Place, bytes] = {}

    def add(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Appends one record."""
        self.count += 1
        record = blake2b(repr((value, headers)).encode(), digest_size=16).digest()
        before = self._digests.get((topic, key), bytes(16))
        if key is None:
            total = (int.from_bytes(before) + int.from_bytes(record)) % (1 << 128)
            self._digests[topic, key] = total.to_bytes(16)
        else:
            self._digests[topic, key] = blake2b(before + record, digest_size=16).digest()

    def of(self, topics: Set[str]) -> Sequences:
        """What there is in these topics."""
        found = Sequences()
        found._digests = {place: digest for place, digest in self._digests.items() if place[0] in topics}
        return found

    def different(self, other: Sequences) -> int:
        """How many places differ."""
        places = self._digests.keys() | other._digests.keys()
        return sum(self._digests.get(place) != other._digests.get(place) for place in places)


def compare(storage: Home, publication: str, brokers: Mapping[str, str | int | float | bool]) -> Comparison:
    """Reads a publication's topics back with a plain consumer, and compares them with its concluded outboxes.

    Args:
        storage: the home.
        publication: name.
        brokers: properties of confluent-kafka's client; nothing of this project makes or reads them.
    """
    # Which of them a topic holds, its records show: those of a history have the time of change as a header.
    prepared, timed, topics = Sequences(), Sequences(), set()
    for topic, key, value, headers, time in _prepared(storage, publication):
        prepared.add(topic, key, value, headers)
        timed.add(topic, key, value, (*headers, *time))
        topics.add(topic)
    read, histories = Sequences(), set()
    for topic, key, value, headers in read_topics(brokers, topics) if topics else ():
        read.add(topic, key, value, headers)
        if any(name == _TIME_HEADER for name, _ in headers):
            histories.add(topic)
    others = topics - histories
    different = prepared.of(others).different(read.of(others)) + timed.of(histories).different(read.of(histories))
    return Comparison(len(topics), prepared.count, read.count, different)


def concluded(outboxes: Outboxes) -> list[tuple[OutboxStatus, Manifest]]:
    """The concluded outboxes of a publication in the order they were sent."""
    found = [(status, outboxes.manifest(status.outbox)) for status in outboxes.all() if status.status == "concluded"]
    return sorted(found, key=lambda item: _approved_at(item[0]))


def _approved_at(status: OutboxStatus) -> datetime:
    return next(step.at for step in status.steps if step.status == "approved")


def _prepared(storage: Home, publication: str) -> Iterator[_Prepared]:
    for _, manifest in concluded(storage.publication(publication).outboxes):
        for shard in manifest.shards:
            reader = storage.publication(publication).reader(manifest, shard.shard)
            for batch in reader.batches(0):
                columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value", "timestamp"))
                for topic, key, value, at, own in zip(*columns, _varying(batch), strict=True):
                    yield topic, key, value, (*reader.headers, *own), _time(at)


def _time(at: datetime | None) -> Headers:
    return () if at is None else ((_TIME_HEADER, str((at - _EPOCH) // timedelta(milliseconds=1)).encode()),)


def _varying(batch: Any) -> Iterator[Headers]:
    """The headers that each record has for itself."""
    names = [name for name in batch.schema.names if name.startswith(HEADER_PREFIX)]
    columns = [batch.column(name).to_pylist() for name in names]
    for row in zip(*columns, strict=True) if columns else repeat((), batch.num_rows):
        pairs = zip(names, row, strict=True)
        yield tuple((name.removeprefix(HEADER_PREFIX), value) for name, value in pairs if value is not None)
