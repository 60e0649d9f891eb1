"""The files of a state: Parquet, sorted by entity and identity, in row groups small enough to be read one by one.

Few entities are found by reading the row groups that can hold them, by the least and greatest hash that Parquet
stores of each. Statistics of other columns would only make the footer longer, which every reader reads whole.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.errors import RetriableError
from contexture.records.changes.identity_hashes import first_word, hash_words
from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import STATE

KEYS = ("identity_hash", "entity_hash", "removed")
"""Columns without which rows can be neither sorted nor merged."""


def completed(table: Any, columns: Sequence[str]) -> Any:
    """These columns of a table; those that it lacks are null."""
    for name in columns:
        if name not in table.column_names:
            table = table.append_column(STATE.field(name), pa.nulls(table.num_rows, STATE.field(name).type))
    return table.select(list(columns))


def latest(table: Any, *, keep_removed: bool = False) -> Any:
    """The last row of each identity, in order of entity and identity.

    Args:
        table: rows with at least KEYS, older ones first.
        keep_removed: also identities whose last row is `removed`, as a delta needs them.
    """
    if table.num_rows == 0:
        return table
    order, last = _order(table)
    kept = table.take(pa.array(order[last]))
    return kept if keep_removed else kept.filter(pc.invert(kept.column("removed")))


def _order(table: Any) -> tuple[Any, Any]:
    """Places of the rows in order, and which of them are the last of their identity."""
    entity_high, entity_low = hash_words(table.column("entity_hash"))
    high, low = hash_words(table.column("identity_hash"))
    # Entities nearly always differ in their first word; then one stable sort of sorted pieces, which costs little, is
    # all: rows that share it are of one identity.
    order = np.argsort(entity_high, kind="stable")
    same_entity = entity_high[order][1:] == entity_high[order][:-1]
    same = _neighbours_equal(order, high, low)
    if not np.array_equal(same_entity & same, same_entity):
        order = np.lexsort((low, high, entity_low, entity_high))
        same = _neighbours_equal(order, high, low)
    return order, np.append(~same, True)


def _neighbours_equal(order: Any, high: Any, low: Any) -> Any:
    high, low = high[order], low[order]
    return (high[1:] == high[:-1]) & (low[1:] == low[:-1])


ROWS_IN_GROUP = 2_000
"""A hundred entities among a million are read in 35 ms; with groups of 20,000 rows it takes as long as reading all."""
ROWS_AT_ONCE = 100_000
_WORDS = 1 << 64


class StateFile:
    """One file. `rows` and `groups` are its numbers of rows and row groups."""

    def __init__(self, folder: StoredFolder, name: str) -> None:
        self._folder, self._name = folder, name
        with _reading(folder, name), folder.open_table(name, pre_buffer=False) as file:
            self._metadata = file.metadata
        self.rows: int = self._metadata.num_rows
        self.groups: int = self._metadata.num_row_groups
        self._first, self._last = self._bounds()

    def holding(self, words: Any) -> Any:
        """The row groups that can hold entities whose hashes begin with one of these words (sorted)."""
        begins = np.searchsorted(words, self._first, side="left")
        ends = np.searchsorted(words, self._last, side="right")
        return np.flatnonzero(begins < ends)

    def between(self, least: int, greatest: int, columns: Sequence[str]) -> Any:
        """The rows of entities whose hashes begin with a word from `least` to `greatest`, both included."""
        low, high = np.uint64(least), np.uint64(greatest)
        table = self.read(np.flatnonzero((self._first <= high) & (self._last >= low)), columns)
        words, _ = hash_words(table.column("entity_hash"))
        begin, end = np.searchsorted(words, low, side="left"), np.searchsorted(words, high, side="right")
        return table.slice(int(begin), int(end - begin))

    def read(self, groups: Any, columns: Sequence[str]) -> Any:
        """Reads whole row groups."""
        if not len(groups):
            return STATE.empty_table().select(list(columns))
        with (
            _reading(self._folder, self._name),
            self._folder.open_table(
                self._name, pre_buffer=False, metadata=self._metadata, page_checksum_verification=True
            ) as file,
        ):
            return file.read_row_groups(groups.tolist(), columns=list(columns)).select(list(columns))

    def _bounds(self) -> tuple[Any, Any]:
        place = self._metadata.schema.names.index("entity_hash")
        groups = (self._metadata.row_group(group) for group in range(self.groups))
        found = [group.column(place).statistics for group in groups]
        return tuple(
            np.array([first_word(value) for value in values], dtype=np.uint64)
            for values in ([each.min for each in found], [each.max for each in found])
        )  # type: ignore[return-value]  # two members, which a generator can not say


def merged(
    files: Sequence[StateFile],
    columns: Sequence[str],
    *,
    keep_removed: bool = False,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[Any]:
    """The last rows of all identities in files, older files first; a table for each range of hashes, in order.

    Hashes are spread evenly, so that a table has some `rows_at_once` rows, however many there are.

    Args:
        files: what is merged.
        columns: which columns, with KEYS among them.
        keep_removed: also identities whose last row is `removed`.
        rows_at_once: what memory holds.
    """
    count = max(1, -(-sum(file.rows for file in files) // rows_at_once))
    for number in range(count):
        least, following = _WORDS * number // count, _WORDS * (number + 1) // count
        parts = [file.between(least, following - 1, columns) for file in files]
        yield latest(pa.concat_tables([STATE.empty_table().select(list(columns)), *parts]), keep_removed=keep_removed)


class StateFileWriter:
    """Writes one file from tables that follow each other in order; `rows` counts them."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self.rows = 0

    def write(self, table: Any) -> None:
        """Appends rows that are sorted and follow on those before."""
        if table.num_rows:
            self._writer.write_table(table.select(STATE.names).cast(STATE), row_group_size=ROWS_IN_GROUP)
        self.rows += table.num_rows


@contextmanager
def writing(folder: StoredFolder, name: str) -> Iterator[StateFileWriter]:
    """A writer; the file is there when the block ends without an error."""
    with folder.table_writer(
        name,
        STATE,
        compression_level=1,
        use_dictionary=False,
        write_statistics=["entity_hash"],
        write_page_checksum=True,
    ) as writer:
        yield StateFileWriter(writer)


@contextmanager
def _reading(folder: StoredFolder, name: str) -> Iterator[None]:
    """As `FileTree.translate_read_errors`; the files of a generation go when two further ones are there."""
    path = folder.path_of(name)
    try:
        with folder.translate_read_errors(name):
            yield
    except FileNotFoundError as error:
        raise RetriableError(
            f"the file {path!r} of state does not exist: runs changed state while it was read",
            next_step="retry the task, which reads the current state; if that does not help, the file is lost: see "
            "the how-to on recovering, for the storage",
            path=path,
        ) from error


def with_keys(columns: Sequence[str]) -> list[str]:
    """The columns, and those that merging needs."""
    return list(dict.fromkeys([*columns, *KEYS]))
