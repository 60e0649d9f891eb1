"""The records that a shard's senders may have left in topics, and how they are recognised there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from contexture.kafka.interfaces import Place
from contexture.kafka.producer import ABORTED_KEY
from contexture.sending.dead_letters import DeadLetters, split_dead_letters
from contexture.sending.interfaces import ShardReader
from contexture.sending.pieces import TransactionChunk, split_by_transaction

TopicKey = tuple[str, bytes | None]
"""A topic and the key of a record."""


class Fingerprint(NamedTuple):
    """A record's key, and a digest of its value."""

    key: bytes | None
    digest: bytes | None


class RecordTrace(NamedTuple):
    """The position of a record in its shard, its topic and its fingerprint."""

    position: int
    topic: str
    fingerprint: Fingerprint


EncodePiece = Callable[[TransactionChunk], TransactionChunk]

_COLUMNS: Final = ("position", "topic", "key", "value")


def fingerprint(key: bytes | None, value: bytes | None) -> Fingerprint:
    """Returns what distinguishes a record from the others of its topic."""
    return Fingerprint(key, None if value is None else blake2b(value, digest_size=16).digest())


class ShardRecords:
    """The records of one shard, and what its senders write beside them.

    `encoded` returns rows as they are sent; `mark` is the value of the record that this shard's senders abort."""

    def __init__(
        self, reader: ShardReader, encoded: EncodePiece, mark: bytes, letters: DeadLetters | None = None
    ) -> None:
        self.reader = reader
        self.encoded = encoded
        self.mark = mark
        self.dead_letter_topic = letters.topic if letters is not None else None
        self._aborted = fingerprint(ABORTED_KEY, mark)

    def before(self, position: int) -> Iterator[TransactionChunk]:
        """Yields the pieces that begin before a position; the last may go beyond it."""
        for piece in split_by_transaction(self.reader.batches(0)):
            if piece.first_position >= position:
                return
            yield piece

    def transaction(self, position: int) -> Iterator[TransactionChunk]:
        """Yields the pieces of the transaction that begins at a position; none at the shard's end."""
        first: int | None = None
        for piece in split_by_transaction(self.reader.batches(position)) if position < self.reader.records else ():
            first = piece.transaction if first is None else first
            if piece.transaction != first:
                return
            yield piece

    def fingerprints(
        self, among: Iterable[TransactionChunk], topics: Collection[str] | None = None
    ) -> Iterator[RecordTrace]:
        """Yields position, topic and fingerprint of the records of chunks; `topics` None selects all."""
        for position, topic, key, value in self._columns(among, topics):
            if topics is None or topic in topics:
                yield RecordTrace(position, topic, fingerprint(key, value))

    def traces(self, among: Iterable[TransactionChunk], topics: Collection[str]) -> dict[str, set[Fingerprint]]:
        """By topic, everything that sending these pieces can leave: records, their dead letters, aborted marks."""
        found: defaultdict[str, set[Fingerprint]] = defaultdict(set)
        for topic, trace in self._traces(among, topics):
            found[topic].add(trace)
        return found

    def own(self, firsts: Mapping[Place, Fingerprint], among: Iterable[TransactionChunk]) -> list[Place]:
        """Returns the partitions in which the given record is a trace of these pieces."""
        sought = {(topic, first) for (topic, _), first in firsts.items()}
        found = {trace for trace in self._traces(among, {topic for topic, _ in sought}) if trace in sought}
        return sorted(place for place, first in firsts.items() if (place[0], first) in found)

    def _traces(self, among: Iterable[TransactionChunk], topics: Collection[str]) -> Iterator[tuple[str, Fingerprint]]:
        yield from ((topic, self._aborted) for topic in topics)
        aside = self.dead_letter_topic if self.dead_letter_topic in topics else None
        # Any record may have become a dead letter, whatever its topic.
        for _, topic, key, value in self._columns(among, topics if aside is None else None):
            if topic in topics:
                yield topic, fingerprint(key, value)
            if aside is not None:
                yield from ((aside, fingerprint(*left)) for left in split_dead_letters(key, value))

    def _columns(
        self, among: Iterable[TransactionChunk], topics: Collection[str] | None
    ) -> Iterator[tuple[int, str, bytes | None, bytes | None]]:
        for piece in among:
            if topics is None or piece.topics() & set(topics):
                rows = self.encoded(piece).rows
                yield from zip(*(rows.column(name).to_pylist() for name in _COLUMNS), strict=True)
