"""From rows of an outbox to calls of `produce`: the loop every record passes, so it is as short as it gets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from operator import length_hint
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from contexture.kafka.ports import Headers, TransactionalProducer
from contexture.storage.schemas import HEADER_PREFIX

_POLL_EVERY = 1_000

Row = tuple[object, ...]
Column = Sequence[object] | None


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive rows of one transaction.

    Attributes:
        transaction: its number.
        rows: the rows.
    """

    transaction: int
    rows: pa.RecordBatch

    @property
    def first_position(self) -> int:
        """The position of the first row."""
        return int(self.rows.column("position")[0].as_py())

    @property
    def source_transaction(self) -> int | None:
        """The registry transaction of the last row, if the outbox has that column."""
        if "source_transaction" not in self.rows.schema.names:
            return None
        value = self.rows.column("source_transaction")[-1].as_py()
        return None if value is None else int(value)

    def topics(self) -> set[str]:
        """The topics the rows go to."""
        return {str(topic) for topic in self.rows.column("topic").unique().to_pylist()}

    def byte_size(self) -> int:
        """Bytes of keys and values."""
        return sum(_byte_size(self.rows.column(name)) for name in ("key", "value"))


def topics_until(batches: Iterable[pa.RecordBatch], position: int) -> set[str]:
    """The topics of the rows before a position.

    Args:
        batches: in order, from position 0 on.
        position: of the first row that is left out.
    """
    found: set[str] = set()
    for batch in batches:
        left = position - int(batch.column("position")[0].as_py()) if batch.num_rows else 0
        if batch.num_rows and left <= 0:
            break
        found |= {str(topic) for topic in batch.column("topic").slice(0, left).unique().to_pylist()}
    return found


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The batches cut where the transaction number changes; one transaction may come in several pieces."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column("transaction")
        starts = [0, *_changes(numbers)]
        for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
            yield Piece(int(numbers[start].as_py()), batch.slice(start, end - start))


def produce_rows(
    producer: TransactionalProducer,
    rows: pa.RecordBatch,
    headers: Headers,
    when_full: Callable[[Row], None],
    refused: Callable[[str], None] = lambda topic: None,
) -> None:
    """Hands all rows to the client, in order.

    Args:
        producer: within a transaction.
        rows: of the outbox.
        headers: the constant ones.
        when_full: takes the row for which the client's queue had no room, and returns when it is in.
        refused: is told the topic of the row that the client did not take, before what it raised is raised.
    """
    columns = _arguments(rows, headers)
    iterators = [iter(column) for column in columns]
    calls = map(producer.produce, *iterators)
    left = rows.num_rows
    while left:
        try:
            # The C loop of deque over map runs no bytecode between two records.
            deque(islice(calls, _POLL_EVERY), maxlen=0)
        except BufferError:
            row = rows.num_rows - length_hint(iterators[0]) - 1
            when_full(tuple(next(column) if isinstance(column, repeat) else column[row] for column in columns))
        except Exception:
            refused(str(columns[0][rows.num_rows - length_hint(iterators[0]) - 1]))
            raise
        producer.poll(0)
        left = length_hint(iterators[0])


def calls(rows: pa.RecordBatch, headers: Headers) -> Iterator[Row]:
    """The arguments of `produce` for each row, for whoever sends them one by one."""
    return zip(*_arguments(rows, headers))  # noqa: B905 - what is the same for all rows has no end


def _arguments(rows: pa.RecordBatch, constant: Headers) -> list[Any]:
    """The columns in the order of `produce`'s parameters, as few as these rows need; the first one is a list."""
    columns: list[Any] = [
        _topics(rows.column("topic")),
        rows.column("value").to_pylist(),
        rows.column("key").to_pylist(),
    ]
    partitions = _whole_numbers(rows, "partition", -1)
    timestamps = _whole_numbers(rows, "timestamp", 0)
    headers = _headers(rows, constant)
    if partitions is None and timestamps is None and headers is None:
        return columns
    return [
        *columns,
        repeat(-1) if partitions is None else partitions,
        repeat(None),
        repeat(None),
        repeat(0) if timestamps is None else timestamps,
        repeat(None) if headers is None else headers,
    ]


def _changes(numbers: pa.Array[Any]) -> list[int]:
    """Where a number differs from the one before it. (`to_numpy` would import pandas, which takes a second.)"""
    differs = pc.not_equal(numbers.slice(1), numbers.slice(0, len(numbers) - 1))
    return [int(index) + 1 for index in pc.indices_nonzero(differs).to_pylist()]


def _byte_size(column: pa.Array[Any]) -> int:
    lengths = pc.binary_length(cast("pa.BinaryArray", column))
    return int(pc.sum(lengths).as_py() or 0)


def _topics(column: pa.Array[Any]) -> list[object]:
    encoded = cast(
        "pa.DictionaryArray[Any, Any]", column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    )
    names: list[object] = encoded.dictionary.to_pylist()
    return list(map(names.__getitem__, encoded.indices.to_pylist()))


def _whole_numbers(rows: pa.RecordBatch, name: str, absent: int) -> list[object] | None:
    if name not in rows.schema.names or rows.column(name).null_count == rows.num_rows:
        return None
    column = rows.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    values: list[object] = list(column.cast(pa.int64()).to_pylist())
    # Arrow's own filling would import pandas, as everything does that takes a Python value: a third of a second.
    return [absent if value is None else value for value in values] if column.null_count else values


def _headers(rows: pa.RecordBatch, constant: Headers) -> Iterable[object] | None:
    # An envelope's outbox has headers that only some kinds of records have: whole batches go without them.
    columns = {name: rows.column(name) for name in rows.schema.names if name.startswith(HEADER_PREFIX)}
    used = {name: column for name, column in columns.items() if column.null_count < rows.num_rows}
    if not used:
        return repeat(list(constant)) if constant else None
    some_absent = any(column.null_count for column in used.values())
    named = {name.removeprefix(HEADER_PREFIX): column.to_pylist() for name, column in used.items()}
    return _HeaderLists(list(constant), named, some_absent=some_absent)


class _HeaderLists:
    """The headers of each row, made when the row is sent and gone after it.

    Held all at once, they would be a hundred thousand objects that Python's collector of cycles looks through again
    and again: that took longer than everything else about headers.
    """

    def __init__(self, constant: list[tuple[str, bytes | None]], named: dict[str, Any], *, some_absent: bool) -> None:
        self._constant = constant
        self._named = named
        self._some_absent = some_absent

    def __iter__(self) -> Iterator[list[tuple[str, bytes | None]]]:
        pairs = [zip(repeat(name), column) for name, column in self._named.items()]
        # Nothing but C between two records, but for those that lack a header.
        complete = map(list, zip(*map(repeat, self._constant), *pairs))  # noqa: B905 - nor have the constant ones
        return map(_present, complete) if self._some_absent else complete

    def __getitem__(self, row: int) -> list[tuple[str, bytes | None]]:
        own = [(name, column[row]) for name, column in self._named.items()]
        return [*self._constant, *(_present(own) if self._some_absent else own)]


def _present(headers: list[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    return [pair for pair in headers if pair[1] is not None]
