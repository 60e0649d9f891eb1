"""Writes an outbox of Contexture's own events: the same files as every other publication's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import pyarrow as pa

from contexture.monitoring.own_events import StoredEvent, records
from contexture.publications import OperationsPublication
from contexture.records.cloudevents import Record
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import Manifest, QualityVerdict, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import SHARD_FILE, PublicationStore
from contexture.storage.schemas import HEADER_PREFIX, OUTBOX

TOPICS: Final = pa.schema([("topic", pa.string()), ("records", pa.int64())])


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The events that a run has read.

    Attributes:
        events: in order.
        generation: of the state that the run continues.
        watermark: the position up to which events are sent when the outbox is concluded; None before the first.
    """

    events: Sequence[StoredEvent]
    generation: int
    watermark: str | None


def prepare(store: PublicationStore, order: StageOrder, reading: EventBatch) -> Manifest:
    """Writes the outbox of a run; the same order and the same events result in the same bytes.

    Raises:
        RetriableError: the storage failed.
    """
    made = list(records(reading.events, order.publication.message.envelope))
    name = _outbox_id(order, reading)
    outbox = store.outbox(name)
    shard = _shard(outbox.shard(0), order, reading.events, made)
    counts = {"topic": order.publication.topics.topics, "records": [len(made)] * len(order.publication.topics.topics)}
    topics = pa.table(counts if made else {"topic": [], "records": []}, schema=TOPICS)
    outbox.write_topics(topics, compression="zstd")
    outbox.write_verdict(QualityVerdict(outbox=name, approved=True, results=()))
    manifest = _manifest(order, reading, name, shard)
    outbox.write_manifest(manifest)
    store.outboxes.prepared(manifest)
    return manifest


def _outbox_id(order: StageOrder, reading: EventBatch) -> str:
    parts = [
        order.fingerprint,
        order.mode,
        # A rejected outbox is not that of the next run, which may find the same events.
        order.run,
        OperationsPublication.of(order.publication).publish.transaction_records,
        reading.generation,
        [event.id for event in reading.events],
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _shard(
    folder: StoredFolder, order: StageOrder, events: Sequence[StoredEvent], made: Sequence[Record]
) -> ShardManifest:
    if not made:
        return ShardManifest(shard=0, records=0, bytes=0, transactions=0, file=None, sha256=None)
    table = _table(order, events, made)
    folder.write_table(SHARD_FILE, table, compression="zstd")
    topics = len(order.publication.topics.topics)
    return ShardManifest(
        shard=0,
        records=table.num_rows,
        bytes=topics * sum(len(each.key or b"") + len(each.value or b"") for each in made),
        transactions=int(table.column("transaction")[-1].as_py()) + 1,
        file=SHARD_FILE,
        sha256=folder.sha256(SHARD_FILE),
    )


def _table(order: StageOrder, events: Sequence[StoredEvent], made: Sequence[Record]) -> Any:
    """Returns the records in sending order: each event to all topics, before the next event."""
    topics = order.publication.topics.topics
    rows = [(event, record, topic) for event, record in zip(events, made, strict=True) for topic in topics]
    limit = OperationsPublication.of(order.publication).publish.transaction_records
    columns: dict[str, list[Any]] = {
        "position": list(range(len(rows))),
        "topic": [topic for _, _, topic in rows],
        "key": [record.key for _, record, _ in rows],
        "value": [record.value for _, record, _ in rows],
        "partition": [None] * len(rows),
        "timestamp": [event.at for event, _, _ in rows],
        "transaction": [position // limit for position in range(len(rows))],
        "batch": list(range(len(rows))),
        "sub_batch": [0] * len(rows),
        "events": [1] * len(rows),
    }
    names = [name for name, _ in made[0].headers]
    for name in names:
        columns[f"{HEADER_PREFIX}{name}"] = [dict(record.headers)[name] for _, record, _ in rows]
    schema = pa.schema([*OUTBOX, *(pa.field(f"{HEADER_PREFIX}{name}", pa.binary()) for name in names)])
    return pa.Table.from_pydict(columns, schema=schema)


def _manifest(order: StageOrder, reading: EventBatch, outbox: str, shard: ShardManifest) -> Manifest:
    events = reading.events
    content = "\n".join(f"{event.id} {event.data}" for event in events)
    return Manifest(
        outbox=outbox,
        publication=order.publication.name,
        fingerprint=order.fingerprint,
        sequence=order.sequence,
        mode=order.mode,
        run=order.run,
        landing_digest=sha256(content.encode()).hexdigest(),
        received_from=events[0].at if events else None,
        received_to=events[-1].at if events else None,
        state_generation=reading.generation,
        watermark=reading.watermark,
        shards=(shard,),
        topics=len(order.publication.topics.topics) if events else 0,
        read=len(events),
        present=len(events),
        source_count=len(events),
        accepted=len(events),
        unchanged=0,
        quarantined={},
        quarantined_entities=0,
        warnings={},
        repeated=0,
        upserts=len(events),
        deletes=0,
        absent=0,
    )
