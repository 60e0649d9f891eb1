"""Planning on the driver: from narrow rows and state to what each shard will hold.

Only hashes, times and verdicts come here. The plan is written beside the rendered events, where the tasks that
assemble the shards find it: which events to leave out, where batches begin, and which identities to delete.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.batches import batch_starts
from contexture.changes import Comparison, ShrinkGuard, Verdict, compare
from contexture.kafka.partitioner import shards_for
from contexture.outbox.schemas import STATE
from contexture.outbox.state import State, StatePointer
from contexture.outbox.storage import Storage
from spark_jobs.preparation.settings import Preparation

NARROW = ["event", "verdict", "identity_hash", "entity_hash", "content_hash", "modified_at", "received_at"]
COMPARED = ["identity_hash", "entity_hash", "missing_since", "withheld"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What planning found, in numbers; the rows themselves lie on storage.

    Attributes:
        conflicting: events to be quarantined because they contradict each other.
        superseded: events left out because a newer one tells the same identity.
        upserts: events that will be sent.
        deletes: tombstones that will be sent.
        absent: identities missing for the first time; nothing is sent for them yet.
    """

    conflicting: Any
    superseded: int
    upserts: int
    deletes: int
    absent: int


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
    snapshot = _snapshot(storage, preparation)
    state = State(storage, preparation.publication.name)
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    comparison = compare(snapshot, state.table(pointer, COMPARED), tells_absence=tells_absence)
    limit = preparation.publication.source.shrink_limit
    guard = ShrinkGuard(limit.share, limit.count)
    guard.check(len(comparison.vanished), pointer.identities, confirmed=confirmed_shrink)
    sent = _write_events(storage, preparation, snapshot, comparison)
    held = _affected(state, pointer, comparison)
    _write_deletions(storage, preparation, held["vanished"])
    _write_marks(storage, preparation, held)
    return Plan(
        conflicting=snapshot.column("event").take(pa.array(comparison.conflicting)).to_numpy(),
        superseded=len(comparison.superseded),
        upserts=sent,
        deletes=len(comparison.vanished),
        absent=len(comparison.first_absent),
    )


def _snapshot(storage: Storage, preparation: Preparation) -> Any:
    """Narrow columns in order of events, the order in which everything downstream counts."""
    path = storage.path(f"{preparation.work}/evaluated")
    dataset = ds.dataset(path, filesystem=storage.filesystem, format="parquet")
    table = dataset.to_table(columns=NARROW)
    for name, width in (("identity_hash", 16), ("entity_hash", 16)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.binary(width)))
    return table.sort_by("event").combine_chunks()


def _write_events(storage: Storage, preparation: Preparation, snapshot: Any, comparison: Comparison) -> int:
    """Writes the events that will be sent, in order, and where their batches begin."""
    kept = np.asarray(pc.equal(snapshot.column("verdict"), Verdict.SEND)).copy()
    kept[comparison.superseded] = False
    kept[comparison.conflicting] = False
    events = snapshot.column("event").to_numpy()[kept]
    received_at = snapshot.column("received_at").cast(pa.int64()).to_numpy()[kept]
    batches = preparation.publication.batches
    starts = batch_starts(received_at, batches.batch_size, batches.batch_timeout)
    _save(storage, f"{preparation.work}/events.npy", events)
    _save(storage, f"{preparation.work}/batch_starts.npy", events[starts] if len(events) else events)
    return len(events)


def _affected(state: State, pointer: StatePointer, comparison: Comparison) -> dict[str, Any]:
    """The whole state rows that the comparison touches; state is only read again when there are any."""
    names = ("first_absent", "vanished", "returned", "withheld", "released")
    if not any(len(getattr(comparison, name)) for name in names):
        return {name: STATE.empty_table() for name in names}
    table = state.table(pointer)
    return {name: table.take(pa.array(getattr(comparison, name))) for name in names}


def _write_deletions(storage: Storage, preparation: Preparation, vanished: Any) -> None:
    topics, keys = vanished.column("topics").to_pylist(), vanished.column("key").to_pylist()
    by = [
        names[0].encode() if key is None or preparation.joins_lines else key
        for names, key in zip(topics, keys, strict=True)
    ]
    shards = pa.array(shards_for(by, preparation.publication.publish.shards), pa.int32())
    _write(storage, f"{preparation.work}/deletions.parquet", vanished.append_column("shard", shards))


def _write_marks(storage: Storage, preparation: Preparation, held: dict[str, Any]) -> None:
    """State rows that change without a record being sent: marks of absence and of withholding."""
    now = pa.scalar(preparation.reference_time.astimezone(UTC), pa.timestamp("us", tz="UTC"))
    never = pa.scalar(None, pa.timestamp("us", tz="UTC"))
    rows = pa.concat_tables(
        [
            _with(held["first_absent"], "missing_since", now),
            _with(held["returned"], "missing_since", never),
            _with(held["withheld"], "withheld", pa.scalar(value=True)),
            _with(held["released"], "withheld", pa.scalar(value=False)),
        ]
    )
    _write(storage, f"{preparation.folder.state_delta(preparation.outbox)}/marks.parquet", rows)


def _with(table: Any, name: str, value: Any) -> Any:
    column = pa.array([value.as_py()] * table.num_rows, STATE.field(name).type)
    return table.set_column(table.schema.get_field_index(name), STATE.field(name), column)


def _write(storage: Storage, name: str, table: Any) -> None:
    with storage.replacing(name) as path:
        pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")


def _save(storage: Storage, name: str, array: Any) -> None:
    content = io.BytesIO()
    np.save(content, array)
    storage.write(name, content.getvalue())


def load(storage: Storage, name: str) -> Any:
    """An array that planning has saved."""
    return np.load(io.BytesIO(storage.read(name)))
