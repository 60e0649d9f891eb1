"""Planning on the driver: from narrow rows and state to what each shard will hold.

Only hashes, times, verdicts and topics come here. The plan is written beside the rendered events, where the tasks that
assemble the shards find it: which events to send in which batches, and which identities to delete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.batches import plan as plan_batches
from contexture.changes import Comparison, ShrinkGuard, Verdict, compare
from contexture.kafka.partitioner import shards_for
from contexture.ngsi.rules.catalogue import severities
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.schemas import STATE
from contexture.outbox.state import State, StatePointer
from contexture.outbox.state_reader import StateReader
from contexture.outbox.storage import Storage
from spark_jobs.preparation.collisions import find_collisions, note_collisions, refusing
from spark_jobs.preparation.conflicts import RULE as DUPLICATE
from spark_jobs.preparation.event_plan import EventPlan
from spark_jobs.preparation.marks import marked
from spark_jobs.preparation.outdated import outdated
from spark_jobs.preparation.settings import Preparation

NARROW = [
    *("event", "verdict", "identity_hash", "entity_hash", "content_hash"),
    *("modified_at", "received_at", "topic", "meaning"),
]
COMPARED = ["identity_hash", "entity_hash", "missing_since", "withheld"]
HELD_ROWS = ("first_absent", "vanished", "removed", "returned", "withheld", "released")
"""Fields of a comparison that number rows of state."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What planning found, in numbers; the rows themselves lie on storage.

    Attributes:
        conflicting: events to be quarantined because they contradict each other.
        collided: events to be quarantined because their topic is another identity's.
        repeated: accepted events left out because a newer one tells the same identity.
        upserts: events that will be sent.
        deletes: identities whose tombstones will be sent.
        absent: identities missing for the first time; nothing is sent for them yet.
        dropped: identities that vanish beyond the shrink limit, where that is no error.
        contradictions: events that contradict another one, whether refused or not.
        collisions: events whose topic is another identity's, whether refused or not.
        skipped_newer: accepted events that were tried again, and are left out because the target holds newer ones.
    """

    conflicting: Any
    collided: Any
    repeated: int
    upserts: int
    deletes: int
    absent: int
    dropped: int = 0
    contradictions: int = 0
    collisions: int = 0
    skipped_newer: int = 0


def plan(preparation: Preparation, *, tells_absence: bool, confirmed_shrink: bool) -> Plan:
    """Compares, guards, plans batches, and writes the plan.

    Args:
        preparation: what is prepared.
        tells_absence: the snapshot is complete enough to tell what is gone.
        confirmed_shrink: a person has confirmed that much may be deleted.

    Raises:
        ConfigurationError: more identities vanish than may.
    """
    storage = Storage(preparation.home)
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    reader = State(storage, preparation.publication.name).reader(pointer)
    snapshot, skipped = _without_outdated(storage, preparation, _snapshot(storage, preparation), reader)
    collisions = find_collisions(preparation.publication, snapshot, reader)
    note_collisions(storage, preparation, snapshot, collisions)
    collided = np.array([found.row for found in collisions if found.refused], dtype=np.int64)
    snapshot = refusing(snapshot, collided)
    tells_absence = tells_absence and preparation.publication.source.detect_deletions
    held = reader.table(COMPARED) if tells_absence else reader.of_entities(snapshot["entity_hash"], COMPARED)
    comparison, touched = _touched(reader, held, _compared(preparation, snapshot, held, tells_absence))
    dropped = _guarded(preparation, len(comparison.vanished), pointer.identities, confirmed=confirmed_shrink)
    sent = _sent(preparation, snapshot, comparison)
    sent.save(storage, preparation.work)
    deleted = np.union1d(comparison.vanished, comparison.removed)
    _write_state(storage, preparation, touched, comparison, deleted)
    verdicts = np.asarray(snapshot.column("verdict"))
    return Plan(
        conflicting=snapshot.column("event").to_numpy()[comparison.conflicting],
        collided=snapshot.column("event").to_numpy()[collided],
        repeated=int((verdicts[comparison.superseded] <= Verdict.UNCHANGED).sum()),
        upserts=len(sent.events),
        deletes=len(deleted),
        absent=len(comparison.first_absent),
        dropped=dropped,
        contradictions=comparison.contradictions,
        collisions=len(collisions),
        skipped_newer=skipped,
    )


def _guarded(preparation: Preparation, vanishing: int, held: int, *, confirmed: bool) -> int:
    """Holds the deletion of many up, where `count-drop` is an error; else says how many go beyond the limit."""
    limit = preparation.publication.source.shrink_limit
    guard = ShrinkGuard(limit.share, limit.count)
    if severities(preparation.publication.quality.rules).get("count-drop") == "error":
        guard.check(vanishing, held, confirmed=confirmed)
        return 0
    return vanishing if guard.exceeded(vanishing, held) and not confirmed else 0


def _snapshot(storage: Storage, preparation: Preparation) -> Any:
    """Narrow columns in order of events, the order in which everything downstream counts."""
    path = storage.path(f"{preparation.work}/evaluated")
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet")
    table = dataset.to_table(columns=NARROW)
    return table.sort_by("event").combine_chunks()


def _without_outdated(
    storage: Storage, preparation: Preparation, snapshot: Any, reader: StateReader
) -> tuple[Any, int]:
    """The snapshot without retried events that the target holds newer, and how many of these were accepted."""
    retry = preparation.order.retry
    if retry is None:
        return snapshot, 0
    refused_by = Outboxes(storage, preparation.publication.name).manifest(retry.outbox)
    rows = outdated(snapshot, reader, refused_by.sequence)
    skipped = int((np.asarray(snapshot.column("verdict"))[rows] <= Verdict.UNCHANGED).sum())
    return snapshot.take(pa.array(np.delete(np.arange(snapshot.num_rows), rows))), skipped


def _compared(preparation: Preparation, snapshot: Any, held: Any, tells_absence: bool) -> Comparison:
    last_wins = severities(preparation.publication.quality.rules).get(DUPLICATE) != "error"
    comparison = compare(snapshot, held, tells_absence=tells_absence, last_wins=last_wins)
    if preparation.publication.source.detect_deletions and preparation.order.retry is None:
        return comparison
    # What is tried again was read some time ago: what it lacks may have come since.
    return replace(comparison, removed=comparison.removed[:0])


def _sent(preparation: Preparation, snapshot: Any, comparison: Comparison) -> EventPlan:
    kept = np.asarray(pc.equal(snapshot.column("verdict"), Verdict.SEND)).copy()
    kept[comparison.superseded] = False
    kept[comparison.conflicting] = False
    sent = snapshot.select(["event", "received_at", "topic"]).filter(pa.array(kept))
    topics = sent.column("topic").combine_chunks().dictionary_encode()
    batches = preparation.publication.batches
    planned = plan_batches(
        sent.column("received_at").cast(pa.int64()).to_numpy(),
        topics.indices.to_numpy().astype(np.int64),
        batch_size=batches.batch_size,
        batch_timeout_seconds=batches.batch_timeout,
    )
    return EventPlan(sent.column("event").to_numpy(), planned.batch, planned.sub_batch)


def _touched(reader: StateReader, held: Any, comparison: Comparison) -> tuple[Comparison, Any]:
    """The state's whole rows that the comparison touches, few as a rule, and the comparison with their numbers."""
    rows = {name: getattr(comparison, name) for name in HELD_ROWS}
    touched = np.unique(np.concatenate(list(rows.values()))).astype(np.int64)
    hashes = held.select(["identity_hash", "entity_hash"]).take(pa.array(touched))
    whole = reader.of_entities(hashes["entity_hash"], STATE.names)
    whole = whole.filter(pc.is_in(whole["identity_hash"], value_set=pc.unique(hashes["identity_hash"])))
    # Both are in the same order.
    return replace(comparison, **{name: np.searchsorted(touched, found) for name, found in rows.items()}), whole


def _write_state(storage: Storage, preparation: Preparation, held: Any, comparison: Comparison, deleted: Any) -> None:
    _write_deletions(storage, preparation, held.take(pa.array(deleted)))
    rows = marked(held, comparison, preparation.reference_time)
    _write(storage, f"{preparation.folder.state_delta(preparation.outbox)}/marks.parquet", rows)


def _write_deletions(storage: Storage, preparation: Preparation, gone: Any) -> None:
    topics, keys = gone.column("topics").to_pylist(), gone.column("key").to_pylist()
    by = [
        names[0].encode() if key is None or preparation.joins_lines else key
        for names, key in zip(topics, keys, strict=True)
    ]
    shards = pa.array(shards_for(by, preparation.publication.publish.shards), pa.int32())
    _write(storage, f"{preparation.work}/deletions.parquet", gone.append_column("shard", shards))


def _write(storage: Storage, name: str, table: Any) -> None:
    with storage.replacing(name) as path:
        pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")
