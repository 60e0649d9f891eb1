"""Assembling the one shard of a registry's outbox, and its quarantine: planned rows in, files with bodies out.

One task, for a registry's transactions have one order. In memory are the bodies of one row group at a time, or one body
that is larger than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.records.messages.envelopes import structure_envelope
from contexture.storage.home import Storage
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import (
    HEADER_PREFIX,
    QUARANTINE,
    REGISTRY_HEADER,
    STRUCTURE_OUTBOX,
    TRANSCODED_HEADERS,
    with_headers,
)
from spark_jobs.preparation.settings import Preparation
from spark_jobs.structures.bodies import Bodies
from spark_jobs.structures.enveloped import Wrapping
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
    wrapping = Wrapping(structure_envelope(preparation.publication))
    schema = with_headers(STRUCTURE_OUTBOX, [*wrapping.columns, *_headers_of_conversions(preparation)])
    written = 0
    with (
        storage.replacing(f"{folder}/{SHARD_FILE}") as path,
        pq.ParquetWriter(
            path,
            schema,
            filesystem=storage.filesystem,
            compression="zstd",
            compression_level=1,
            # A dictionary of bodies, or the least and greatest of them, would hold them once more.
            use_dictionary=["topic"],
            write_statistics=["position", "transaction"],
            write_page_checksum=True,
        ) as writer,
        Bodies(storage, preparation.work) as bodies,
    ):
        for first, rows in _groups(planned):
            values = wrapping.values(rows, bodies)
            written += sum(len(value) for value in values if value is not None)
            writer.write_table(_records(rows, first, values, wrapping.headers(rows), schema))
    return written + int(pc.sum(pc.binary_length(planned.column("key"))).as_py())


def _groups(planned: Any) -> Iterator[tuple[int, Any]]:
    """The records of each row group, and the position of the first of them."""
    first = size = 0
    for position, bytes_ in enumerate(planned.column("size").to_pylist()):
        if position > first and (size + bytes_ > GROUP_BYTES or position - first >= GROUP_ROWS):
            yield first, planned.slice(first, position - first)
            first, size = position, 0
        size += bytes_
    yield first, planned.slice(first)


def _headers_of_conversions(preparation: Preparation) -> Sequence[str]:
    """The headers about conversions, where some are allowed."""
    return TRANSCODED_HEADERS if preparation.publication.message.allow_lossy else ()


def _records(rows: Any, first: int, values: Sequence[Any], headers: Mapping[str, Any], schema: Any) -> Any:
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names} | headers
    columns["position"] = pa.array(range(first, first + count), pa.int64())
    columns["value"] = _values(values)
    columns["partition"] = pa.nulls(count, pa.int32())
    columns["events"] = pa.repeat(pa.scalar(1, pa.int32()), count)
    columns[REGISTRY_HEADER.name] = rows.column("source_transaction").cast(pa.string()).cast(pa.binary())
    for header, name in zip(TRANSCODED_HEADERS, ("transcoded_from", "lost"), strict=True):
        columns[f"{HEADER_PREFIX}{header}"] = rows.column(name).cast(pa.binary())
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def _values(values: Sequence[Any]) -> Any:
    if len(values) == 1 and values[0] is not None:
        # A large value is alone, and not copied.
        offsets = pa.array([0, len(values[0])], pa.int32()).buffers()[1]
        return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(values[0])])
    return pa.array([value if value is None else memoryview(value) for value in values], pa.binary())


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
