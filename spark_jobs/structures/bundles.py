"""Messages of whole transactions (`message.bundle: transaction`): planned records, and their values.

All values of one transaction for one topic become one record without a key; tombstones stay as they are, in a
transaction of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.publications import SdmxPublication
from contexture.records.changes.structure_changes import PlannedRecord, PlannedTransaction
from contexture.records.changes.structure_plan import StructurePlan
from contexture.sending.size_limits import LARGEST_RECORD_BYTES
from contexture.sources.sdmx import split
from contexture.sources.sdmx.splitting.joining import MessageJoiner
from contexture.storage.schemas import BUNDLED
from spark_jobs.structures.bodies import Bodies, BodyPosition, BodyStream
from spark_jobs.structures.rows import PLANNED

PARTS = "parts"
"""The column with the positions of the bodies that one message joins, in order; null for a tombstone."""

_PART = pa.struct([PLANNED.field(name) for name in BodyPosition._fields])
PLANNED_BUNDLES = pa.schema(
    [*(each.with_nullable(True) if each.name == "key" else each for each in PLANNED), pa.field(PARTS, pa.list_(_PART))]
)
"""The columns of PLANNED, and the parts of each record; `size` is the sum of theirs."""

_OF_ONE_STRUCTURE = ("key", "transcoded_from", "lost")


def is_bundled(publication: SdmxPublication) -> bool:
    """Returns whether the values of a transaction are one message."""
    return publication.message.bundle == "transaction"


def bundle_plan(plan: StructurePlan) -> StructurePlan:
    """Returns the plan with one record for each topic of a transaction that has values."""
    return replace(plan, transactions=tuple(map(_bundle_transaction, plan.transactions)))


def _bundle_transaction(transaction: PlannedTransaction) -> PlannedTransaction:
    if transaction.deletions:
        return transaction
    first: dict[str, PlannedRecord] = {}
    for record in transaction.records:
        first.setdefault(record.topic, record)
    return replace(transaction, records=tuple(first.values()))


def bundle_rows(records: Any) -> Any:
    """Returns planned records as those of `bundle_plan`, with the columns of PLANNED_BUNDLES.

    Args:
        records: one for each structure and topic, with the columns of PLANNED.
    """
    rows: list[dict[str, Any]] = []
    bundles: dict[tuple[int, str], dict[str, Any]] = {}
    for row in records.to_pylist():
        if row["unit"] is None:
            rows.append({**row, PARTS: None})
            continue
        part = {name: row[name] for name in BodyPosition._fields}
        place = row["transaction"], row["topic"]
        if place in bundles:
            _extend(bundles[place], row, part)
        else:
            bundles[place] = {**row, **dict.fromkeys(_OF_ONE_STRUCTURE), PARTS: [part]}
            rows.append(bundles[place])
    return pa.Table.from_pylist(rows, schema=PLANNED_BUNDLES)


def _extend(bundle: dict[str, Any], row: Mapping[str, Any], part: dict[str, Any]) -> None:
    bundle[PARTS].append(part)
    bundle["size"] += row["size"]
    bundle["timestamp"] = max(bundle["timestamp"], row["timestamp"])


def bundled_structures(records: Any) -> Any:
    """Returns which structures are in messages, as a table with the columns of BUNDLED; arguments of `bundle_rows`."""
    values = records.filter(pc.is_valid(records.column("unit")))
    urns = values.column("key").cast(pa.string())
    table = values.select(["source_transaction", "topic"]).append_column("urn", urns)
    return table.cast(BUNDLED)


def event_counts(rows: Any) -> Any:
    """Returns how many structures each record holds."""
    return pa.array([1 if parts is None else len(parts) for parts in rows.column(PARTS).to_pylist()], pa.int32())


def largest_bytes(publication: SdmxPublication) -> int:
    """Returns the bytes of the largest message: what new topics accept before compression."""
    return int(publication.topics.config.get("max.message.bytes", LARGEST_RECORD_BYTES))


def joined_values(rows: Any, bodies: Bodies, limit: int) -> list[bytes | None]:
    """Returns the values of records; None for a tombstone.

    Args:
        rows: with the columns of PLANNED_BUNDLES.
        bodies: where the parts are.
        limit: bytes of the largest value.

    Raises:
        ConfigurationError: a message has more bytes than `limit`, or its structures come in several formats.
    """
    return [None if row[PARTS] is None else _joined(row, bodies, limit) for row in _narrow(rows)]


def _narrow(rows: Any) -> Iterator[Mapping[str, Any]]:
    yield from rows.select(["topic", "source_transaction", "media_type", PARTS]).to_pylist()


def _joined(row: Mapping[str, Any], bodies: Bodies, limit: int) -> bytes:
    joiner = MessageJoiner()
    parts: Sequence[Mapping[str, Any]] = row[PARTS]
    for number, part in enumerate(parts, 1):
        with BodyStream(bodies.read(BodyPosition(**part))) as stream:
            for artefact in split(stream, row["media_type"]):
                joiner.add(artefact)
        if joiner.size > limit:
            raise _too_large(row, number, len(parts), limit)
    return joiner.message()


def _too_large(row: Mapping[str, Any], read: int, count: int, limit: int) -> ConfigurationError:
    number, topic = row["source_transaction"], row["topic"]
    which = "a full run" if number is None else f"transaction {number} of the registry"
    return ConfigurationError(
        f"{count} structures of {which} for topic {topic} are to be one message, and the first {read} have more "
        f"than the {limit:,} bytes of a largest record already",
        next_step="set message.bundle: artefact, or select fewer structures (source.select), or route them to several "
        "topics (topics.routes), or raise max.message.bytes in topics.config; nothing was sent",
    )
