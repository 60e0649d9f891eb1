"""Consecutive rows of one transaction, cut from the batches of an outbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast  # Any: element types of columns differ

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class TransactionChunk:
    """Consecutive rows of one transaction.

    Attributes:
        transaction: its number.
        rows: the rows.
    """

    transaction: int
    rows: pa.RecordBatch

    @property
    def first_position(self) -> int:
        return int(self.rows.column("position")[0].as_py())

    @property
    def source_transaction(self) -> int | None:
        """The registry transaction of the last row, if the outbox has that column."""
        if "source_transaction" not in self.rows.schema.names:
            return None
        value = self.rows.column("source_transaction")[-1].as_py()
        return None if value is None else int(value)

    def topics(self) -> set[str]:
        return {str(topic) for topic in self.rows.column("topic").unique().to_pylist()}

    def byte_size(self) -> int:
        """Returns the bytes of keys and values."""
        return sum(_byte_size(self.rows.column(name)) for name in ("key", "value"))


def topics_until(batches: Iterable[pa.RecordBatch], position: int) -> set[str]:
    """Returns the topics of the rows before a position; batches come in order from position 0 on."""
    found: set[str] = set()
    for batch in batches:
        left = position - int(batch.column("position")[0].as_py()) if batch.num_rows else 0
        if batch.num_rows and left <= 0:
            break
        found |= {str(topic) for topic in batch.column("topic").slice(0, left).unique().to_pylist()}
    return found


def split_by_transaction(batches: Iterable[pa.RecordBatch]) -> Iterator[TransactionChunk]:
    """Yields the batches cut where the transaction number changes; one transaction may come in several pieces."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column("transaction")
        starts = [0, *_changes(numbers)]
        for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
            yield TransactionChunk(int(numbers[start].as_py()), batch.slice(start, end - start))


def _changes(numbers: pa.Array[Any]) -> list[int]:
    """Returns where a number differs from the one before it. (`to_numpy` would import pandas, which takes a second.)"""
    differs = pc.not_equal(numbers.slice(1), numbers.slice(0, len(numbers) - 1))
    return [int(index) + 1 for index in pc.indices_nonzero(differs).to_pylist()]


def _byte_size(column: pa.Array[Any]) -> int:
    lengths = pc.binary_length(cast("pa.BinaryArray", column))
    return int(pc.sum(lengths).as_py() or 0)
