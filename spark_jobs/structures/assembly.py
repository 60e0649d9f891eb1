"""Assembling the one shard of a registry's outbox, and its quarantine: planned rows in, files with bodies out.

One task, for a registry's transactions have one order. In memory are the bodies of one row group at a time, or one body
that is larger than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.outbox.layout import SHARD_FILE
from contexture.outbox.schemas import QUARANTINE, REGISTRY_HEADER, STRUCTURE_OUTBOX
from contexture.outbox.storage import Storage
from spark_jobs.preparation.settings import Preparation
from spark_jobs.structures.bodies import Bodies, Place
from spark_jobs.structures.landing_units import Unit, batches_of

GROUP_BYTES = 16 << 20
GROUP_ROWS = 10_000

SUMMARY = "bytes long"
"""What Spark gets of the shard."""


def planned_file(work: str) -> str:
    """Where the planned records lie."""
    return f"{work}/planned.parquet"


def quarantined_file(work: str) -> str:
    """Where it lies what is refused."""
    return f"{work}/quarantined.parquet"


def assembly(preparation: Preparation, units: Sequence[Unit]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for `mapInArrow` over the one shard; yields one row."""

    def assemble(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            storage = Storage(preparation.home)
            write_quarantine(storage, preparation, units)
            yield pa.record_batch([pa.array([write_shard(storage, preparation)], pa.int64())], names=["bytes"])

    return assemble


def write_shard(storage: Storage, preparation: Preparation) -> int:
    """Writes the shard's file, if it has records; returns the bytes of keys and values."""
    planned = pq.read_table(storage.path(planned_file(preparation.work)), filesystem=storage.filesystem)
    if not planned.num_rows:
        return 0
    folder = preparation.folder.shard(preparation.outbox, 0)
    with (
        storage.replacing(f"{folder}/{SHARD_FILE}") as path,
        pq.ParquetWriter(
            path,
            STRUCTURE_OUTBOX,
            filesystem=storage.filesystem,
            compression="zstd",
            compression_level=1,
            # A dictionary of bodies, or the least and greatest of them, would hold them once more.
            use_dictionary=["topic"],
            write_statistics=["position", "transaction"],
        ) as writer,
        Bodies(storage, preparation.work) as bodies,
    ):
        for first, rows in _groups(planned):
            writer.write_table(_records(rows, first, bodies))
    return int(pc.sum(planned.column("size")).as_py() + pc.sum(pc.binary_length(planned.column("key"))).as_py())


def _groups(planned: Any) -> Iterator[tuple[int, Any]]:
    """The records of each row group, and the position of the first of them."""
    first = size = 0
    for position, bytes_ in enumerate(planned.column("size").to_pylist()):
        if position > first and (size + bytes_ > GROUP_BYTES or position - first >= GROUP_ROWS):
            yield first, planned.slice(first, position - first)
            first, size = position, 0
        size += bytes_
    yield first, planned.slice(first)


def _records(rows: Any, first: int, bodies: Bodies) -> Any:
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names}
    columns["position"] = pa.array(range(first, first + count), pa.int64())
    columns["value"] = _values([bodies.at(place) if place else None for place in _places(rows)])
    columns["partition"] = pa.nulls(count, pa.int32())
    columns["events"] = pa.repeat(pa.scalar(1, pa.int32()), count)
    columns[REGISTRY_HEADER.name] = rows.column("source_transaction").cast(pa.string()).cast(pa.binary())
    names = STRUCTURE_OUTBOX.names
    return pa.table([columns[name] for name in names], names=names).cast(STRUCTURE_OUTBOX)


def _values(bodies: Sequence[Any]) -> Any:
    if len(bodies) == 1 and bodies[0] is not None:
        # A large body is alone, and not copied.
        offsets = pa.array([0, len(bodies[0])], pa.int32()).buffers()[1]
        return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, bodies[0]])
    return pa.array([None if body is None else body.to_pybytes() for body in bodies], pa.binary())


def _places(rows: Any) -> Iterator[Place | None]:
    for place in zip(*(rows.column(name).to_pylist() for name in Place._fields), strict=True):
        yield Place(*place) if place[0] is not None else None


def write_quarantine(storage: Storage, preparation: Preparation, units: Sequence[Unit]) -> None:
    """Writes the landing rows of what is refused, each with the rule."""
    refused = pq.read_table(storage.path(quarantined_file(preparation.work)), filesystem=storage.filesystem)
    if not refused.num_rows:
        return
    landing = preparation.folder.landing(preparation.order.run)
    target = f"{preparation.folder.quarantine(preparation.outbox)}/structures.parquet"
    with (
        storage.replacing(target) as path,
        pq.ParquetWriter(
            path,
            QUARANTINE,
            filesystem=storage.filesystem,
            compression="zstd",
            use_dictionary=["operation", "scope", "rule", "severity", "message"],
            write_statistics=["ordinal"],
        ) as writer,
    ):
        for number in pc.unique(refused.column("unit")).to_pylist():
            for batch in batches_of(storage, landing, units[number]):
                _quarantine(writer, batch, refused)


def _quarantine(writer: Any, batch: Any, refused: Any) -> None:
    ordinals = batch.column("ordinal")
    here = refused.filter(pc.is_in(refused.column("event"), value_set=ordinals))
    if here.num_rows:
        places = pc.index_in(here.column("event").combine_chunks(), value_set=ordinals)
        rows = pa.Table.from_batches([batch.take(places)])
        for name in ("rule", "severity", "message"):
            rows = rows.append_column(name, here.column(name))
        writer.write_table(rows.select(QUARANTINE.names).cast(QUARANTINE))
