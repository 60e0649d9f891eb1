"""The assembly of the one shard of a registry's outbox, and of its quarantine, from planned rows and bodies.

One task does it, because a registry's transactions have one order. It has the bodies of one row group in memory, or one
body that is larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from contexture.publications import SdmxPublication
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import StructureContent, StructureEnvelope, structure_envelope
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import (
    HEADER_PREFIX,
    QUARANTINE,
    REGISTRY_HEADER,
    STRUCTURE_OUTBOX,
    TRANSCODED_HEADERS,
    with_headers,
)
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.parquet_rows import Unit, batches_of
from spark_jobs.structures.bodies import Bodies, BodyPosition
from spark_jobs.structures.bundles import PARTS, event_counts, joined_values, largest_bytes

_CONTENT_COLUMNS = ("key", "media_type", "content_hash", "source_transaction", "happened_at", "occasion")


class _LastEvent(NamedTuple):
    """The last event, which may go to several topics."""

    position: BodyPosition
    content: StructureContent
    value: bytes


class EnvelopeWriter:
    """A writer of the values and headers of records.

    Args:
        envelope: of the publication; None writes bodies as they are.

    Attributes:
        columns: names of the headers that vary from record to record.
    """

    def __init__(self, envelope: StructureEnvelope | None) -> None:
        self._envelope = envelope
        self._last: _LastEvent | None = None
        self.columns = () if envelope is None else envelope.columns

    def values(self, rows: Any, bodies: Bodies) -> list[Any]:
        """Returns the values of planned rows, as buffers or bytes; None for a tombstone."""
        if self._envelope is None or not self._envelope.is_structured:
            return [bodies.read(position) if position else None for position in _positions(rows)]
        return [
            self._event(self._envelope, content, position, bodies) if position else None
            for content, position in zip(_contents(rows), _positions(rows), strict=True)
        ]

    def headers(self, rows: Any) -> Mapping[str, Any]:
        """Returns the columns of the headers that an envelope adds."""
        if self._envelope is None:
            return {}
        found = [
            self._envelope.headers(content) if position else self._envelope.deletion(content)
            for content, position in zip(_contents(rows), _positions(rows), strict=True)
        ]
        return {
            f"{HEADER_PREFIX}{name}": pa.array([values[number] for values in found], pa.binary())
            for number, name in enumerate(self.columns)
        }

    def _event(
        self, envelope: StructureEnvelope, content: StructureContent, position: BodyPosition, bodies: Bodies
    ) -> bytes:
        last = self._last
        if last is None or (last.position, last.content) != (position, content):
            # Memory has room for one large body, not for two.
            self._last = last = None
            last = _LastEvent(position, content, envelope.event(content, bodies.read(position).to_pybytes()))
            self._last = last
        return last.value


def _contents(rows: Any) -> Iterator[StructureContent]:
    columns = (rows.column(name).to_pylist() for name in _CONTENT_COLUMNS)
    for key, media_type, content_hash, transaction, at, otherwise in zip(*columns, strict=True):
        occasion = RunReference(registry_transaction=transaction, modified_at=at, otherwise=otherwise)
        yield StructureContent(key.decode(), media_type, content_hash, occasion)


def _positions(rows: Any) -> Iterator[BodyPosition | None]:
    for position in zip(*(rows.column(name).to_pylist() for name in BodyPosition._fields), strict=True):
        yield BodyPosition(*position) if position[0] is not None else None


GROUP_BYTES = 16 << 20
GROUP_ROWS = 10_000

SUMMARY = "bytes long"
"""The schema of what the task returns to Spark."""


PLANNED_FILE = "planned.parquet"
"""The planned records, in the work folder."""

QUARANTINED_FILE = "quarantined.parquet"
"""The refused rows, in the work folder."""


def assembly(preparation: StageContext, units: Sequence[Unit]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns the function for `mapInArrow` over the one shard, which yields one row."""

    def assemble(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            write_quarantine(preparation, units)
            yield pa.record_batch([pa.array([write_shard(preparation)], pa.int64())], names=["bytes"])

    return assemble


def write_shard(preparation: StageContext) -> int:
    """Writes the shard's file, if it has records; returns the bytes of keys and values."""
    planned = preparation.work.table(PLANNED_FILE)
    if not planned.num_rows:
        return 0
    publication = SdmxPublication.of(preparation.publication)
    envelopes, limit = EnvelopeWriter(structure_envelope(publication)), largest_bytes(publication)
    schema = with_headers(STRUCTURE_OUTBOX, [*envelopes.columns, *_headers_of_conversions(preparation)])
    written = 0
    with (
        preparation.records.shard(0).table_writer(
            SHARD_FILE,
            schema,
            compression_level=1,
            # A dictionary of bodies, or their statistics, would hold them in memory once more.
            use_dictionary=["topic"],
            write_statistics=["position", "transaction"],
            write_page_checksum=True,
        ) as writer,
        Bodies(preparation.work) as bodies,
    ):
        for first, rows in _groups(planned):
            is_bundled = PARTS in rows.column_names
            values = joined_values(rows, bodies, limit) if is_bundled else envelopes.values(rows, bodies)
            written += sum(len(value) for value in values if value is not None)
            writer.write_table(_records(rows, first, values, envelopes.headers(rows), schema))
    return written + int(pc.sum(pc.binary_length(planned.column("key"))).as_py() or 0)


def _groups(planned: Any) -> Iterator[tuple[int, Any]]:
    """Returns the records of each row group, with the position of the first of them."""
    first = size = 0
    for position, bytes_ in enumerate(planned.column("size").to_pylist()):
        if position > first and (size + bytes_ > GROUP_BYTES or position - first >= GROUP_ROWS):
            yield first, planned.slice(first, position - first)
            first, size = position, 0
        size += bytes_
    yield first, planned.slice(first)


def _headers_of_conversions(preparation: StageContext) -> Sequence[str]:
    """Returns the headers about conversions, if the publication allows them."""
    return TRANSCODED_HEADERS if SdmxPublication.of(preparation.publication).message.allow_lossy else ()


def _records(rows: Any, first: int, values: Sequence[Any], headers: Mapping[str, Any], schema: Any) -> Any:
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names} | dict(headers)
    columns["position"] = pa.array(range(first, first + count), pa.int64())
    columns["value"] = _values(values)
    columns["partition"] = pa.nulls(count, pa.int32())
    columns["events"] = event_counts(rows) if PARTS in columns else pa.repeat(pa.scalar(1, pa.int32()), count)
    columns[REGISTRY_HEADER.name] = rows.column("source_transaction").cast(pa.string()).cast(pa.binary())
    for header, name in zip(TRANSCODED_HEADERS, ("transcoded_from", "lost"), strict=True):
        columns[f"{HEADER_PREFIX}{header}"] = rows.column(name).cast(pa.binary())
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def _values(values: Sequence[Any]) -> Any:
    if len(values) == 1 and values[0] is not None:
        # A large value is the only one of its group, and is not copied.
        offsets = pa.array([0, len(values[0])], pa.int32()).buffers()[1]
        return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(values[0])])
    return pa.array([value if value is None else memoryview(value) for value in values], pa.binary())


def write_quarantine(preparation: StageContext, units: Sequence[Unit]) -> None:
    """Writes the landing rows of refused structures, each with its rule."""
    refused = preparation.work.table(QUARANTINED_FILE)
    if not refused.num_rows:
        return
    landing = preparation.landing
    with preparation.quarantine.table_writer(
        "structures.parquet",
        QUARANTINE,
        use_dictionary=["operation", "scope", "rule", "severity", "message"],
        write_statistics=["ordinal"],
    ) as writer:
        for number in pc.unique(refused.column("unit")).to_pylist():
            for batch in batches_of(landing, units[number]):
                _quarantine(writer, batch, refused)


def _quarantine(writer: Any, batch: Any, refused: Any) -> None:
    ordinals = batch.column("ordinal")
    here = refused.filter(pc.is_in(refused.column("event"), value_set=ordinals))
    if here.num_rows:
        found = pc.index_in(here.column("event").combine_chunks(), value_set=ordinals)
        rows = pa.Table.from_batches([batch.take(found)])
        for name in ("rule", "severity", "message"):
            rows = rows.append_column(name, here.column(name))
        writer.write_table(rows.select(QUARANTINE.names).cast(QUARANTINE))
