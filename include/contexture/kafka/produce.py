"""From rows of an Arrow record batch to calls of `produce`: every record passes this loop, so it is short."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, repeat
from operator import length_hint
from typing import Any, cast  # Any: column types differ

import pyarrow as pa

from contexture.kafka.interfaces import Headers, TransactionalProducer

_POLL_EVERY = 1_000
HEADER_COLUMN_PREFIX = "header:"
"""Columns of this prefix hold headers: the name after it, and the value of each record. A test holds it equal to the
outbox's (`contexture.storage.schemas.HEADER_PREFIX`)."""

Row = tuple[object, ...]


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
        refused: receives the topic of the row that the client did not take, before the client's error is raised.
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


def produce_arguments(rows: pa.RecordBatch, headers: Headers) -> Iterator[Row]:
    """Returns the arguments of `produce` for each row, for callers that send rows one at a time."""
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
    columns = {name: rows.column(name) for name in rows.schema.names if name.startswith(HEADER_COLUMN_PREFIX)}
    used = {name: column for name, column in columns.items() if column.null_count < rows.num_rows}
    if not used:
        return repeat(list(constant)) if constant else None
    some_absent = any(column.null_count for column in used.values())
    named = {name.removeprefix(HEADER_COLUMN_PREFIX): column.to_pylist() for name, column in used.items()}
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
