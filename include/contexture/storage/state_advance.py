"""Moving state on: what a run changed becomes a sorted delta, and deltas that have grown are merged.

A run that changes little writes little: a delta is merged with the files before it only when what is newer than one of
them outgrows a share of it. So each file is several times as large as all that are newer, their number grows with the
logarithm of what is held, and a changed row is rewritten some times on its way into the base, however large that is.
Memory holds a chunk of rows, never a whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.storage.schemas import STATE
from contexture.storage.state import State, StatePointer
from contexture.storage.state_files import StateFile, merged, writing
from contexture.storage.state_rows import KEYS, latest
from contexture.storage.storage import Storage

MERGE_SHARE = 0.2
"""A file is merged with all newer ones when they hold more rows than this share of its own."""
ROWS_IN_CHUNK = 250_000
"""Rows that are sorted in memory at once, some 200 bytes each."""


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a generation, older ones first, with their rows, and how many identities they hold together."""

    files: tuple[str, ...]
    rows: tuple[int, ...]
    identities: int


def advance(
    state: State,
    pointer: StatePointer,
    changes: str,
    sequence: int,
    *,
    rows_in_chunk: int = ROWS_IN_CHUNK,
    suffix: str = "",
) -> Written:
    """Writes the files of the generation that follows on `pointer`, and points to none of them.

    Args:
        state: whose.
        pointer: the generation before.
        changes: a folder of STATE rows as shards wrote them, later files over earlier ones.
        sequence: of the outbox that is concluded; the same inputs give the same files, byte for byte.
        rows_in_chunk: what is sorted in memory at once.
        suffix: tells the files apart from those of the outbox of that sequence, where it is not that outbox's changes.
    """
    label = f"{sequence:012d}{suffix}"
    before = Written(pointer.files, pointer.rows, pointer.identities)
    deltas = list(_deltas(state, _chunks(state.storage, changes, rows_in_chunk), label))
    if not deltas:
        return before
    first = merge_from(before.rows, sum(rows for _, rows in deltas))
    if not first:
        return _new_base(state, [*before.files, *(name for name, _ in deltas)], label)
    growth = _growth(state, before, [name for name, _ in deltas])
    newest = _merged(state, [*zip(before.files, before.rows, strict=True)][first:] + deltas, label)
    files, rows = zip(*[*zip(before.files, before.rows, strict=True)][:first], newest, strict=True)
    return Written(files, rows, before.identities + growth)


def merge_from(rows: Sequence[int], added: int) -> int:
    """The first of the files (their rows are given, older ones first) that is merged with what is added."""
    newer = [added + sum(rows[place + 1 :]) for place in range(len(rows))]
    outgrown = (place for place in range(len(rows)) if newer[place] > MERGE_SHARE * rows[place])
    return next(outgrown, len(rows))


def _deltas(state: State, chunks: Iterator[Any], label: str) -> Iterator[tuple[str, int]]:
    """Sorted files of what the run changed, with their rows; one, unless there is much of it."""
    for number, chunk in enumerate(chunks):
        name = f"delta-{label}{f'-{number:03d}' if number else ''}.parquet"
        with writing(state.storage, state.path(name)) as file:
            file.write(latest(chunk, keep_removed=True))
        yield name, file.rows


def _chunks(storage: Storage, folder: str, rows_in_chunk: int) -> Iterator[Any]:
    parts: list[Any] = []
    rows = 0
    for batch in _batches(storage, folder, rows_in_chunk):
        parts.append(batch)
        rows += batch.num_rows
        if rows >= rows_in_chunk:
            yield pa.Table.from_batches(parts).select(STATE.names).cast(STATE)
            parts, rows = [], 0
    if rows:
        yield pa.Table.from_batches(parts).select(STATE.names).cast(STATE)


def _batches(storage: Storage, folder: str, rows: int) -> Iterator[Any]:
    for name in storage.files(folder, ".parquet"):
        path = f"{folder}/{name}"
        with (
            storage.reading(path),
            pq.ParquetFile(storage.path(path), filesystem=storage.filesystem, page_checksum_verification=True) as file,
        ):
            yield from file.iter_batches(batch_size=rows, columns=STATE.names)


def _new_base(state: State, names: Sequence[str], label: str) -> Written:
    name = f"base-{label}.parquet"
    rows = _merge(state, names, name, keep_removed=False)
    return Written((name,), (rows,), rows)


def _merged(state: State, newest: Sequence[tuple[str, int]], label: str) -> tuple[str, int]:
    """The newest files as one; nothing is written when there is one."""
    if len(newest) == 1:
        return newest[0]
    name = f"merged-{label}.parquet"
    return name, _merge(state, [each for each, _ in newest], name, keep_removed=True)


def _merge(state: State, names: Sequence[str], into: str, *, keep_removed: bool) -> int:
    files = [StateFile(state.storage, state.path(name)) for name in names]
    with writing(state.storage, state.path(into)) as target:
        for piece in merged(files, STATE.names, keep_removed=keep_removed):
            target.write(piece)
    return target.rows


def _growth(state: State, before: Written, deltas: Sequence[str]) -> int:
    """How many identities the deltas add; removed ones count against it."""
    pointer = StatePointer(files=before.files)
    files = [StateFile(state.storage, state.path(name)) for name in deltas]
    reader = state.reader(pointer)
    return sum(_added(piece, reader) for piece in merged(files, KEYS, keep_removed=True))


def _added(changed: Any, reader: Any) -> int:
    held = reader.of_entities(changed.column("entity_hash"), ["identity_hash"]).column("identity_hash")
    is_known = pc.is_in(changed.column("identity_hash"), value_set=held)
    removed = changed.column("removed")
    added = pc.sum(pc.and_(pc.invert(is_known), pc.invert(removed))).as_py() or 0
    gone = pc.sum(pc.and_(is_known, removed)).as_py() or 0
    return int(added - gone)
