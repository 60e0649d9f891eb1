"""The tables of a plan of structures: evaluated rows, records, and quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes import ChangeKind
from contexture.records.changes.structure_changes import NO_CONTENT, PlannedRecord, PlannedTransaction
from contexture.records.changes.structure_plan import StructurePlan

_UTC = pa.timestamp("us", tz="UTC")

_WHAT_IT_IS = [
    pa.field("event", pa.int64(), nullable=False),
    pa.field("operation", pa.string(), nullable=False),
    pa.field("verdict", pa.int32(), nullable=False),
    pa.field("urn", pa.string()),
    pa.field("declared_urn", pa.string()),
    pa.field("kind", pa.string()),
    pa.field("agency", pa.string()),
    pa.field("id", pa.string()),
    pa.field("version", pa.string()),
    pa.field("source_transaction", pa.int64()),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("content_hash", pa.binary(32)),
    pa.field("topics", pa.list_(pa.string())),
    pa.field("references", pa.list_(pa.string()), nullable=False),
    pa.field("reference_count", pa.int32(), nullable=False),
    pa.field("is_final", pa.bool_(), nullable=False),
    pa.field("rules", pa.string()),
    pa.field("warnings", pa.string()),
    pa.field("media_type", pa.string()),
    pa.field("transcoded_from", pa.string()),
    pa.field("lost", pa.string()),
    pa.field("modified_at", _UTC),
    pa.field("received_at", _UTC, nullable=False),
]

EVALUATED = pa.schema(_WHAT_IT_IS)
"""One row per landing row, with the verdict of planning, for the checkpoint.

`event` is the ordinal of the landing row; `rules` and `warnings` are names separated by commas; `topics` is set if the
content was accepted; `transcoded_from` is the media type before a conversion, and `lost` what the conversion lost."""

_VIOLATION = pa.struct(
    [
        pa.field("rule", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)

UNPLANNED = pa.schema(
    [
        *_WHAT_IT_IS,
        pa.field("unit", pa.int32(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("errors", pa.list_(_VIOLATION), nullable=False),
    ]
)
"""The same rows before planning, with the position of the body and the violations for quarantine."""

PLANNED = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("unit", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("transaction", pa.int64(), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("sub_batch", pa.int64(), nullable=False),
        pa.field("source_transaction", pa.int64()),
        pa.field("transcoded_from", pa.string()),
        pa.field("lost", pa.string()),
        pa.field("media_type", pa.string()),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("happened_at", _UTC),
        pa.field("occasion", pa.string(), nullable=False),
    ]
)
"""The records in sending order, without their values; a record without a position is a tombstone.

The last four columns are for envelopes. The `content_hash` of a tombstone is that of the deleted structure;
`happened_at` is the time that the registry reports; `occasion` identifies the change if it reports none."""

QUARANTINED = pa.schema([pa.field("event", pa.int64(), nullable=False), pa.field("unit", pa.int32()), *_VIOLATION])
"""The violations for quarantine, without the landing rows; a row that breaks several rules has one each."""


_OF_RECORD = [
    *("event", "unit", "offset", "length", "size", "modified_at", "received_at"),
    *("media_type", "content_hash"),
    *("transcoded_from", "lost"),
]


def evaluated_rows(unplanned: Any, plan: StructurePlan) -> Any:
    """Returns the rows with the verdicts of planning."""
    events = unplanned.column("event").to_pylist()
    refused = {each.event: each.rule for each in plan.refused}
    verdicts = [int(plan.verdicts[event]) for event in events]
    rules = [
        refused.get(event, rule) for event, rule in zip(events, unplanned.column("rules").to_pylist(), strict=True)
    ]
    columns = {name: unplanned.column(name) for name in EVALUATED.names}
    columns["verdict"] = pa.array(verdicts, pa.int32())
    columns["rules"] = pa.array(rules, pa.string())
    # Warnings about a version that is not published concern no one.
    is_superseded = pc.equal(columns["verdict"], int(ChangeKind.SUPERSEDED))
    columns["warnings"] = pc.if_else(is_superseded, pa.scalar(None, pa.string()), columns["warnings"])
    columns["topics"] = pa.array([plan.topics.get(event) for event in events], EVALUATED.field("topics").type)
    return pa.table([columns[name] for name in EVALUATED.names], names=EVALUATED.names).cast(EVALUATED)


def record_rows(unplanned: Any, plan: StructurePlan, moment: datetime) -> Any:
    """Returns the records in sending order, without their values; `moment` is the time of records without one."""
    bodies = {row["event"]: row for row in unplanned.select(_OF_RECORD).to_pylist()} if plan.transactions else {}
    rows: list[dict[str, Any]] = []
    structures = 0
    for number, transaction in enumerate(plan.transactions):
        added = list(_of_transaction(transaction, number, structures, bodies, moment))
        structures = added[-1]["batch"] + 1
        rows += added
    return pa.Table.from_pylist(rows, schema=PLANNED)


def _of_transaction(
    transaction: PlannedTransaction,
    number: int,
    batch: int,
    bodies: Mapping[int, Mapping[str, Any]],
    moment: datetime,
) -> Iterator[dict[str, Any]]:
    """Returns the records of one transaction; each structure is a batch, and each of its topics a sub-batch."""
    urn, sub_batch = None, 0
    for record in transaction.records:
        batch, sub_batch = (batch, sub_batch + 1) if urn == record.urn else (batch + (urn is not None), 0)
        urn = record.urn
        row = {} if record.event is None else bodies[record.event]
        yield {
            "topic": record.topic,
            "key": record.urn.encode(),
            "unit": row.get("unit"),
            "offset": row.get("offset"),
            "length": row.get("length"),
            "size": row.get("size", 0),
            "timestamp": row.get("modified_at") or row.get("received_at") or transaction.at or moment,
            "transaction": number,
            "batch": batch,
            "sub_batch": sub_batch,
            "source_transaction": transaction.id,
            "media_type": row.get("media_type"),
            "content_hash": row.get("content_hash") or (record.gone.content_hash if record.gone else NO_CONTENT),
            "happened_at": row.get("modified_at") or transaction.at,
            "occasion": _occasion(record, row),
            "transcoded_from": row.get("transcoded_from"),
            "lost": row.get("lost"),
        }


def _occasion(record: PlannedRecord, row: Mapping[str, Any]) -> str:
    """Returns what identifies a change if the registry reports neither a number nor a time; retries repeat it."""
    if record.event is not None:
        return f"{row['received_at'].isoformat()} {record.event}"
    # The topics distinguish leaving one of them from the later deletion.
    return f"{record.gone.sequence} {' '.join(record.gone.topics)}" if record.gone else ""


def quarantined_rows(unplanned: Any, plan: StructurePlan) -> Any:
    """Returns the violations by which row rules and planning refuse rows."""
    rows = [
        {"event": row["event"], "unit": row["unit"], **error}
        for row in unplanned.select(["event", "unit", "errors"]).to_pylist()
        for error in row["errors"]
    ]
    units = dict(zip(unplanned.column("event").to_pylist(), unplanned.column("unit").to_pylist(), strict=True))
    rows += [
        {
            "event": each.event,
            "unit": units[each.event],
            "rule": each.rule,
            "severity": "error",
            "message": each.message,
        }
        for each in plan.refused
    ]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: int(row["event"])), schema=QUARANTINED)
