"""Naming the record that a client or a broker refused."""

from __future__ import annotations

from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import RejectedError

_URN = b"urn:sdmx:"


def record_name(key: bytes | None) -> str:
    """A record by its key where that is a structure's URN; other keys may hold data and are not shown."""
    return key.decode(errors="replace") if key is not None and key.startswith(_URN) else "a record"


def naming_largest(refused: RejectedError, rows: pa.RecordBatch) -> RejectedError:
    """The client's refusal of one of these rows, with the largest of them, for the client names none."""
    sizes = pc.add(_lengths(rows, "key"), _lengths(rows, "value"))
    size = pc.max(sizes).as_py()
    index = pc.index(sizes, size).as_py()
    name = record_name(rows.column("key")[index].as_py())
    return RejectedError(
        f"{refused.message}; the largest is {name} with {size} bytes",
        next_step=refused.next_step,
        **{**refused.context, "topic": str(rows.column("topic")[index].as_py())},
    )


def _lengths(rows: pa.RecordBatch, name: str) -> pa.Array[pa.Int64Scalar]:
    return pc.binary_length(cast("pa.BinaryArray", rows.column(name))).cast(pa.int64()).fill_null(0)
