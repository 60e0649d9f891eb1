"""The Parquet files of landing, which tasks write themselves so that no body passes through the JVM."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import LANDING

GROUP_BYTES = 16 << 20
GROUP_ROWS = 10_000
_REPEATING = ["operation", "scope", "path", "type", "version", "media_type"]
_DESCRIBED = [name for name in LANDING.names if name != "body"]


class LandingRow(TypedDict, total=False):
    """A row of landing, in which an absent key means null."""

    ordinal: int
    operation: str
    scope: str
    path: str
    id: str | None
    type: str | None
    version: str | None
    body: bytes | None
    media_type: str | None
    modified_at: datetime | None
    source_transaction: int | None
    received_at: datetime


class LandingFile:
    """A file under construction; its row groups are limited in bytes, so memory depends on the largest body.

    Attributes:
        rows: how many were added.
        sha256: of the complete file; empty before.
    """

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._group: list[LandingRow] = []
        self._bytes = 0
        self.rows = 0
        self.sha256 = ""

    def add(self, row: LandingRow) -> None:
        """Adds a row."""
        size = len(row.get("body") or b"")
        if self._group and (self._bytes + size > GROUP_BYTES or len(self._group) >= GROUP_ROWS):
            self.flush()
        self._group.append(row)
        self._bytes += size
        self.rows += 1
        if self._bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows added so far as a row group."""
        if self._group:
            self._writer.write_table(_table(self._group))
        self._group, self._bytes = [], 0


def _table(rows: Sequence[LandingRow]) -> Any:
    if len(rows) > 1 or rows[0].get("body") is None:
        return pa.Table.from_pylist(rows, schema=LANDING)
    # A single row may have a large body, which is not copied.
    row, body = rows[0], pa.py_buffer(rows[0]["body"])
    offsets = pa.array([0, body.size], pa.int32()).buffers()[1]
    columns = {name: pa.array([row.get(name)], LANDING.field(name).type) for name in _DESCRIBED}
    columns["body"] = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, body])
    return pa.Table.from_arrays([columns[name] for name in LANDING.names], schema=LANDING)


@contextmanager
def landing_file(landing: StoredFolder, name: str) -> Iterator[LandingFile]:
    """Opens a file of landing, which gets its name when the block ends without an error.

    Raises:
        RetriableError: the storage failed.
    """
    with landing.output_stream(name) as stream:
        sink = _Digesting(stream)
        with pq.ParquetWriter(
            pa.PythonFile(sink, mode="w"),
            LANDING,
            compression="zstd",
            use_dictionary=_REPEATING,
            write_statistics=_DESCRIBED,
        ) as writer:
            file = LandingFile(writer)
            yield file
            file.flush()
        file.sha256 = sink.digest.hexdigest()


class _Digesting:
    """A stream that computes the digest while it is written, so that no file is read again."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.closed = False

    def write(self, content: bytes) -> int:
        self.digest.update(content)
        return int(self._stream.write(content) or len(content))

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self.closed = True
