"""Outbox shards in memory, for testing a sender without an outbox on storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any  # Any: element types of columns differ

import pyarrow as pa

if TYPE_CHECKING:
    from contexture.storage.manifests import RegistryPart


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One record of an outbox; further header columns come from `headers`."""

    topic: str
    key: bytes | None
    value: bytes | None
    transaction: int = 0
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class MemoryShard:
    """A shard reader over rows in memory.

    Args:
        rows: in sending order.
        outbox_id, sequence, shard, headers, registry, flush: as of `ShardReader`.
        batch_rows: rows in a batch.
    """

    rows: Sequence[OutboxRow]
    outbox_id: str = "outbox-1"
    sequence: int = 1
    shard: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()
    batch_rows: int = 10_000
    reads: list[int] = field(default_factory=list)
    registry: tuple[RegistryPart, ...] = ()
    flush: bool = False

    @property
    def records(self) -> int:
        return len(self.rows)

    def batches(self, from_position: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows from a position on; notes in `reads` where it was asked to begin."""
        self.reads.append(from_position)
        for start in range(from_position, len(self.rows), self.batch_rows):
            yield record_batch(self.rows[start : start + self.batch_rows], start)


def record_batch(rows: Sequence[OutboxRow], first_position: int) -> pa.RecordBatch:
    columns: dict[str, pa.Array[Any]] = {
        "position": pa.array(range(first_position, first_position + len(rows)), pa.int64()),
        "topic": pa.array([row.topic for row in rows]).dictionary_encode(),
        "key": pa.array([row.key for row in rows], pa.binary()),
        "value": pa.array([row.value for row in rows], pa.binary()),
        "partition": pa.array([row.partition for row in rows], pa.int32()),
        "timestamp": pa.array([row.timestamp_ms for row in rows], pa.timestamp("ms", tz="UTC")),
        "transaction": pa.array([row.transaction for row in rows], pa.int64()),
    }
    for name in sorted({name for row in rows for name, _ in row.headers}):
        columns[f"header:{name}"] = pa.array([dict(row.headers).get(name) for row in rows], pa.binary())
    return pa.RecordBatch.from_pydict(columns)
