"""Looking at the structures of a landing: taken apart, checked, hashed; the one pass over their bodies.

`evaluation(preparation, units)` gives the function for `mapInArrow` over numbers of units. A task reads its units
itself, and writes for each a file of narrow rows and one of the bodies that may be sent.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from spark_jobs.preparation.settings import Preparation
from spark_jobs.structures.bodies import BodyFile, body_file
from spark_jobs.structures.columns import LOOKED_AT
from spark_jobs.structures.landing_units import Unit, batches_of
from spark_jobs.structures.looking import LandedStructure, StructureLook

_LARGE_BYTES = 1 << 20

EVENTS = "events long"
"""What Spark gets of each unit: how many events it was."""

_NARROW = (
    *("ordinal", "operation", "id", "media_type", "modified_at", "source_transaction", "received_at"),
    *("scope", "type", "version"),
)


def looked_at_folder(work: str) -> str:
    """Where the narrow rows of all units lie."""
    return f"{work}/looked_at"


def evaluation(preparation: Preparation, units: Sequence[Unit]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that looks at units by their numbers; yields a row of EVENTS for each."""

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        look = StructureLook(preparation.publication)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                events = _evaluate(preparation, look, units[number], number)
                yield pa.record_batch([pa.array([events], pa.int64())], names=["events"])

    return evaluate


def _evaluate(preparation: Preparation, look: StructureLook, unit: Unit, number: int) -> int:
    storage, landing = Storage(preparation.home), preparation.folder.landing(preparation.order.run)
    with body_file(storage, preparation.work, number) as bodies:
        rows = [
            _row(look, row, bodies, number)
            for batch in batches_of(storage, landing, unit)
            for row in _structures(batch)
        ]
    if sum(row["size"] for row in rows) > _LARGE_BYTES:
        # What took bodies apart refers to itself in circles: few objects for Python, which waits for many, and much
        # memory.
        gc.collect()
    with storage.replacing(f"{looked_at_folder(preparation.work)}/{number:06d}.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=LOOKED_AT), path, filesystem=storage.filesystem)
    return len(rows)


def _structures(batch: Any) -> Iterator[LandedStructure]:
    for row, body in zip(batch.select(_NARROW).to_pylist(), _bodies(batch.column("body")), strict=True):
        yield LandedStructure(**row, body=body)


def _bodies(column: Any) -> Iterator[Any]:
    """Views of the bodies: Arrow's own way to one value copies it."""
    if not len(column):
        return
    _, offsets, content = column.buffers()
    places = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
    for is_valid, (start, end) in zip(column.is_valid().to_pylist(), pairwise(places), strict=True):
        yield content.slice(start, end - start) if is_valid else None


def _row(look: StructureLook, row: LandedStructure, bodies: BodyFile, unit: int) -> dict[str, Any]:
    seen = look.at(row)
    body = row.body if seen.body is None else seen.body
    place = bodies.put(body) if seen.is_good and body is not None else None
    return {
        **seen.columns,
        "unit": unit,
        "offset": place.offset if place else None,
        "length": place.length if place else None,
        "errors": [{"rule": each.rule, "severity": each.severity, "message": each.message} for each in seen.errors],
    }
