"""Rows of an outbox in pieces that fit into memory, whatever single records weigh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc

from contexture.storage.reader import BYTES_PER_BATCH


def bounded(table: Any, max_bytes: int = BYTES_PER_BATCH) -> Iterator[Any]:
    """The table in consecutive slices of at most `max_bytes` of keys and values; a larger record is one alone.

    Written as a row group each, they are what a reader of the shard holds at once: a file has no smaller piece to
    read. (Write values without a dictionary, `use_dictionary=["topic"]`: large ones would be kept for it.)

    Args:
        table: rows with the columns `key` and `value`.
        max_bytes: the size of a slice.
    """
    ends = np.cumsum(_lengths(table, "key") + _lengths(table, "value"))
    start, before = 0, 0
    while start < table.num_rows:
        end = max(start + 1, int(np.searchsorted(ends, before + max_bytes, side="right")))
        yield table.slice(start, end - start)
        start, before = end, int(ends[end - 1])


def _lengths(table: Any, name: str) -> Any:
    return np.asarray(pc.fill_null(pc.binary_length(table.column(name)).cast("int64"), 0))
