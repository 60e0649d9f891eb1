"""Files that the tasks of a preparation write beside the rows that Spark passes on.

Bodies and hashes never travel back through the JVM: each task writes them to one Parquet file for each folder and run
of consecutive ordinals, named by its first event, so that the files of a folder, sorted by name, are in order. A
repeated task writes the same files again.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq

from contexture.storage.home import Storage

_LEAST = 1 << 63


class RunFiles:
    """Writes tables that begin with a column `event`, a file per folder for each run of consecutive ordinals."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._open: dict[str, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> RunFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def begin_run(self) -> None:
        """The next events do not follow on those before: the files are closed."""
        self._stack.close()
        self._open.clear()

    def write(self, folder: str, events: Any) -> None:
        """Appends a table, in order; a table without rows leaves no file."""
        if events.num_rows:
            self._writer(folder, events).write_table(events)

    def _writer(self, folder: str, first: Any) -> pq.ParquetWriter:
        if folder not in self._open:
            # Events of what was notified have numbers below zero, which do not sort as text.
            name = f"{folder}/{first.column('event')[0].as_py() + _LEAST:020d}.parquet"
            path = self._stack.enter_context(self._storage.replacing(name))
            writer = pq.ParquetWriter(path, first.schema, filesystem=self._storage.filesystem, compression="lz4")
            self._open[folder] = self._stack.enter_context(writer)
        return self._open[folder]
