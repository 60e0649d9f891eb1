"""Accepted events on their way to the outbox, written by the tasks that made them.

The values never travel back through the JVM: each task writes what it rendered to one Parquet file per shard and run of
consecutive ordinals, named by its first event, so that the files of a shard, sorted by name, are in sending order. A
repeated task writes the same files again.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.outbox.storage import Storage

RENDERED = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("topics", pa.list_(pa.string()), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("identity", pa.binary(), nullable=False),
        pa.field("identity_hash", pa.binary(16), nullable=False),
        pa.field("entity_hash", pa.binary(16), nullable=False),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""One event with everything its records and its row of state need."""


def rendered_folder(work: str, shard: int) -> str:
    """Where the rendered events of one shard lie."""
    return f"{work}/rendered/shard={shard}"


class RenderedWriter:
    """Writes rendered events, a file per shard for each run of consecutive ordinals."""

    def __init__(self, storage: Storage, work: str) -> None:
        self._storage = storage
        self._work = work
        self._open: dict[int, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> RenderedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def begin_run(self) -> None:
        """The next events do not follow on those before: close the files."""
        self._stack.close()
        self._open.clear()

    def write(self, events: Any) -> None:
        """Appends a table of the RENDERED schema, in order."""
        shards = events.column("shard")
        for shard in pa.compute.unique(shards).to_pylist():
            part = events.filter(pa.compute.equal(shards, shard))
            self._writer(shard, part).write_table(part)

    def _writer(self, shard: int, first: Any) -> pq.ParquetWriter:
        if shard not in self._open:
            name = f"{rendered_folder(self._work, shard)}/{first.column('event')[0].as_py():020d}.parquet"
            path = self._stack.enter_context(self._storage.replacing(name))
            writer = pq.ParquetWriter(path, RENDERED, filesystem=self._storage.filesystem, compression="lz4")
            self._open[shard] = self._stack.enter_context(writer)
        return self._open[shard]
