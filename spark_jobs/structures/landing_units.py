"""The landing of structures in pieces that one task reads by itself, so that large bodies never pass the JVM.

A piece is a row group of a landing file. Within it as many rows are in memory at once as their bodies allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from contexture.storage.schemas import LANDING

BYTES_AT_ONCE = 16 << 20
"""Of bodies in memory; one that is larger is there alone."""

_BODY = "body"


class Unit(NamedTuple):
    """A row group of a landing file."""

    file: str
    group: int


def units_of(storage: Storage, landing: str) -> tuple[Unit, ...]:
    """The pieces of a landing folder, in an order that follows from its files alone."""
    found = []
    for name in storage.files(landing, ".parquet"):
        path = storage.path(f"{landing}/{name}")
        with storage.reading(name), pq.ParquetFile(path, filesystem=storage.filesystem) as file:
            found += [Unit(name, group) for group in range(file.metadata.num_row_groups)]
    return tuple(found)


def batches_of(storage: Storage, landing: str, unit: Unit) -> Iterator[Any]:
    """The rows of a piece as record batches, each small enough for memory."""
    path = storage.path(f"{landing}/{unit.file}")
    with (
        storage.reading(unit.file),
        pq.ParquetFile(path, filesystem=storage.filesystem, pre_buffer=False) as file,
    ):
        group = file.metadata.row_group(unit.group)
        rows = _rows_at_once(group)
        if group.num_rows > rows:
            yield from file.iter_batches(batch_size=rows, row_groups=[unit.group], columns=LANDING.names)
            return
        batches = file.read_row_group(unit.group, columns=LANDING.names).to_batches()
    # A reader that is open holds the page once more, and Arrow's pool what reading took: a large body some times over.
    pa.default_memory_pool().release_unused()
    yield from batches


def _rows_at_once(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    held = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == _BODY)
    return int(max(1, BYTES_AT_ONCE * group.num_rows // max(held, 1)))
