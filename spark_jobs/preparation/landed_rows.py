"""Landing rows as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc


class LandedRow(msgspec.Struct, frozen=True, gc=False):
    """One landing row; `number` counts within its run, times are microseconds since 1970."""

    number: int
    ordinal: int
    operation: str
    path: str
    id: str
    type: str
    body: bytes
    media_type: str
    modified_at: int | None
    received_at: int


def landed_rows(rows: Any, first: int) -> Iterator[LandedRow]:
    """The rows of a record batch, numbered from `first`; what is absent stands as the root path, or empty."""
    columns = [
        rows.column("ordinal"),
        rows.column("operation"),
        *(pc.fill_null(rows.column(name), absent) for name, absent in (("path", "/"), ("id", ""), ("type", ""))),
        pc.fill_null(rows.column("body"), b""),
        pc.fill_null(rows.column("media_type"), ""),
        rows.column("modified_at").cast(pa.int64()),
        rows.column("received_at").cast(pa.int64()),
    ]
    return map(LandedRow, range(first, first + rows.num_rows), *(column.to_pylist() for column in columns))
