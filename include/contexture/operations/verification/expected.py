"""What the topics should hold: read from state, and from the outboxes that are archived."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.operations.verification.comparison import ExpectedHashes, SentRecord
from contexture.storage.delivery import without_dead_letters
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import PublicationStore
from contexture.storage.state import StatePointer
from contexture.storage.state_updates import UNKNOWN_CONTENT

Record = tuple[str, bytes | None, bytes | None]
"""Topic, key and value."""

_STATE_COLUMNS: Final = ["identity", "content_hash", "topics", "key", "sequence"]
_RECORD_COLUMNS: Final = ("topic", "key", "value")


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """An outbox whose records are still stored, and its status."""

    status: OutboxStatus
    manifest: Manifest

    @property
    def sequence(self) -> int:
        """Its place in the publication's order."""
        return self.status.sequence


class Archive:
    """The outboxes of one publication, without those of backfills.

    Args:
        store: of the publication.
    """

    def __init__(self, store: PublicationStore) -> None:
        self._store = store
        self._outboxes = store.outboxes
        self._state = store.state

    def pointer(self) -> StatePointer:
        """The state of now."""
        return self._state.pointer()

    def held(self, pointer: StatePointer) -> Iterator[ExpectedHashes]:
        """What each key of each topic should hold, by a generation of state."""
        for piece in self._state.reader(pointer).pieces(_STATE_COLUMNS):
            columns = (piece.column(name).to_pylist() for name in _STATE_COLUMNS)
            for identity, content, topics, key, sequence in zip(*columns, strict=True):
                for topic in topics:
                    yield ExpectedHashes(topic, key, identity, content, sequence)

    def withheld(self, pointer: StatePointer) -> Iterator[tuple[str, bytes | None]]:
        """Topics and keys of which no one knows which content they hold: a record of theirs is a dead letter."""
        for piece in self._state.reader(pointer).pieces(["topics", "key", "content_hash"]):
            unknown = piece.filter(pc.equal(piece.column("content_hash"), pa.scalar(UNKNOWN_CONTENT, pa.binary(32))))
            for topics, key in zip(
                unknown.column("topics").to_pylist(), unknown.column("key").to_pylist(), strict=True
            ):
                yield from ((topic, key) for topic in topics)

    def concluded(self, until: int) -> list[ArchivedRecord]:
        """The concluded outboxes up to a sequence, in their order."""
        return [each for each in self._all() if each.status.status == "concluded" and each.sequence <= until]

    def moving(self, beyond: int) -> list[ArchivedRecord]:
        """The outboxes behind a sequence of which something may be in the topics: they are sent, or were given up."""
        return [
            each for each in self._all() if each.status.status in {"approved", "abandoned"} and each.sequence > beyond
        ]

    def knows(self, outbox: str) -> bool:
        """Whether an outbox is one of this home, as far as retention has left it."""
        return any(each.outbox == outbox for each in self._outboxes.all())

    def records(self, of: ArchivedRecord) -> Iterator[Record]:
        """The records of an outbox, each shard in its order."""
        for shard in of.manifest.shards:
            yield from self._of_shard(of.manifest, shard.shard)

    def sent(self, of: ArchivedRecord, *, moves: bool = False) -> Iterator[SentRecord]:
        """The same with their shard."""
        for shard in of.manifest.shards:
            for record in self._of_shard(of.manifest, shard.shard):
                yield SentRecord(*record, of.sequence, shard.shard, moves)

    def _of_shard(self, manifest: Manifest, shard: int) -> Iterator[Record]:
        dead_letters = self._store.outbox(manifest.outbox).dead_letters().shards.get(shard, ())
        for batch in without_dead_letters(self._store.reader(manifest, shard).batches(0), dead_letters):
            yield from _rows(batch)

    def _all(self) -> Iterator[ArchivedRecord]:
        for status in self._outboxes.all():
            try:
                manifest = self._outboxes.manifest(status.outbox)
            except ConfigurationError:
                # Retention took it meanwhile.
                continue
            if manifest.mode != "backfill":
                yield ArchivedRecord(status, manifest)


def _rows(batch: Any) -> Iterator[Record]:
    columns = (batch.column(name).to_pylist() for name in _RECORD_COLUMNS)
    return zip(*columns, strict=True)
