"""A state that holds many cars, written at once, as it would lie on storage after many runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.events import ContextIdentity, identity_hash, identity_key
from contexture.storage.schemas import STATE
from contexture.storage.state import State, StatePointer
from contexture.storage.state_files import completed, latest, writing
from tools.bench.cars import MODIFIED_AT, SERVICE, SERVICE_PATH, TYPE

SHARES = (0.9, 0.095, 0.005)
"""Of the identities, in a base and in deltas that have not outgrown it yet."""
_ROWS = 100_000


def hold_cars(state: State, cars: int) -> StatePointer:
    """Makes a state of the cars from 0 on, with contents that no car has, and points to it."""
    ends = np.cumsum([0, *(round(cars * share) for share in SHARES)]).tolist()
    ends[-1] = cars
    names, rows = [], []
    for number, (first, end) in enumerate(pairwise(ends)):
        names.append(f"held-{number}.parquet")
        with writing(state.folder, names[-1]) as file:
            file.write(latest(pa.concat_tables([STATE.empty_table(), *_tables(first, end)])))
        rows.append(file.rows)
    pointer = StatePointer(
        generation=1,
        files=tuple(names),
        rows=tuple(rows),
        identities=cars,
        watermark="2026-03-01",
    )
    state.commit(pointer)
    return pointer


def car_hashes(numbers: Iterable[int]) -> Any:
    """What state knows cars by."""
    return pa.array([identity_hash(key) for key in _keys(numbers)], pa.binary(16))


def _keys(numbers: Iterable[int]) -> list[bytes]:
    return [identity_key(ContextIdentity(SERVICE, SERVICE_PATH, f"car{number}", TYPE)) for number in numbers]


def _tables(first: int, end: int) -> list[Any]:
    return [_cars(begin, min(begin + _ROWS, end)) for begin in range(first, end, _ROWS)]


def _cars(first: int, end: int) -> Any:
    count = end - first
    keys, hashes = _keys(range(first, end)), car_hashes(range(first, end))
    contents = np.random.default_rng(first).bytes(32 * count)
    columns = {
        "identity_hash": hashes,
        "entity_hash": hashes,
        "identity": pa.array(keys, pa.binary()),
        "content_hash": pa.Array.from_buffers(pa.binary(32), count, [None, pa.py_buffer(contents)]),
        "topics": pa.array([["vehiclesxffffx002f4wheels"]] * count, pa.list_(pa.string())),
        "key": pa.array(keys, pa.binary()),
        "modified_at": pa.array([MODIFIED_AT] * count, STATE.field("modified_at").type),
        "withheld": pa.array([False] * count),
        "sequence": pa.array(np.zeros(count, dtype=np.int64)),
        "removed": pa.array([False] * count),
    }
    return completed(pa.table(columns), STATE.names).cast(STATE)
