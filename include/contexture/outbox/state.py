"""State: what the target holds according to us, and the pointer that says which files tell it.

A base, one small delta for each run that changed something, and `CURRENT`, which is replaced last: until then nothing
has happened, and afterwards everything has.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.outbox.layout import PublicationFolder
from contexture.outbox.manifest import Document
from contexture.outbox.schemas import STATE
from contexture.outbox.storage import Storage


class StatePointer(Document):
    """Which files make up the state, and what it was made by.

    `generation` grows by one with each concluded run; `cluster` and `target` are the Kafka cluster's id and the target
    connection's identity (no secrets); `owes_full` is set by an abandoned outbox: the next run sends everything.
    """

    generation: int = 0
    sequence: int = 0
    outbox: str | None = None
    files: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    identities: int = 0
    watermark: str | None = None
    fingerprint: str | None = None
    cluster: str | None = None
    target: str | None = None
    owes_full: str | None = None
    concluded_at: datetime | None = None


class State:
    """The state of one publication on storage."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self.storage = storage
        self.folder = PublicationFolder(publication)

    def pointer(self) -> StatePointer:
        """The current pointer; an empty one before the first run has concluded."""
        try:
            return StatePointer.model_validate_json(self.storage.read(self.folder.current_state()))
        except FileNotFoundError:
            return StatePointer()

    def point(self, pointer: StatePointer) -> None:
        """Makes `pointer` the truth."""
        self.storage.write(self.folder.current_state(), pointer.to_json())

    def table(self, pointer: StatePointer, columns: list[str] | None = None) -> Any:
        """The rows that hold, one per identity: deltas over the base, removed ones left out.

        Args:
            pointer: which state.
            columns: only these (plus what merging needs); all of them when None.
        """
        if not pointer.files:
            return STATE.empty_table().select(columns or STATE.names)
        wanted = columns or STATE.names
        read = list(dict.fromkeys([*wanted, "identity_hash", "removed"]))
        parts = [self._read(name, read) for name in pointer.files]
        return latest(pa.concat_tables(parts)).select(wanted)

    def _read(self, name: str, columns: list[str]) -> Any:
        relative = f"{self.folder.state()}/{name}"
        with self.storage.translating(relative):
            path = self.storage.path(relative)
            return pq.read_table(path, columns=columns, filesystem=self.storage.filesystem, partitioning=None)

    def write(self, name: str, table: Any) -> None:
        """Writes one base or delta file."""
        with self.storage.replacing(f"{self.folder.state()}/{name}") as temporary:
            pq.write_table(table, temporary, filesystem=self.storage.filesystem, compression="zstd")


def latest(table: Any) -> Any:
    """The last row of each identity, in order of identity, without those whose last row is `removed`."""
    if table.num_rows == 0:
        return table
    high, low = hash_words(table.column("identity_hash"))
    order = np.lexsort((np.arange(table.num_rows), low, high))
    last = np.append((high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1]), True)
    kept = table.take(pa.array(order[last]))
    return kept.filter(pc.invert(kept.column("removed")))


def hash_words(column: Any) -> tuple[Any, Any]:
    """Sixteen-byte hashes as two arrays of big-endian words, which numpy can sort and search."""
    array = pa.concat_arrays(column.chunks or [pa.array([], pa.binary(16))]) if hasattr(column, "chunks") else column
    if not len(array):
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    words = np.frombuffer(array.buffers()[1], dtype=">u8", count=2 * (array.offset + len(array)))
    words = words.reshape(-1, 2)[array.offset :]
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)
