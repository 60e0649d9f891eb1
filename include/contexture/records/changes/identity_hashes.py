"""Hashes of identities as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words = npt.NDArray[np.uint64]


def hash_words(column: Any) -> tuple[Words, Words]:
    """Returns sixteen-byte hashes of a pyarrow column (untyped) as two arrays that numpy can sort and search."""
    array = pa.concat_arrays(column.chunks or [pa.array([], pa.binary(16))]) if hasattr(column, "chunks") else column
    if not len(array):
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    words = np.frombuffer(array.buffers()[1], dtype=">u8", count=2 * (array.offset + len(array)))
    words = words.reshape(-1, 2)[array.offset :]
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def first_word(sixteen_bytes: bytes) -> int:
    return int.from_bytes(sixteen_bytes[:8], "big")
