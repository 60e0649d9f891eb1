"""The plan of a run, made on the driver from narrow rows and state.

The driver receives only hashes, times, verdicts and topics. The plan says which events are sent in which batches, and
which identities are deleted. It is written beside the rendered events, where the tasks that assemble shards read it.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.publications import NgsiPublication
from contexture.records.batches import plan_sub_batches
from contexture.records.changes import ChangeKind, Comparison, ShrinkGuard, compare
from contexture.sources.ngsi.rules.catalogue import severities
from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import QUARANTINE, STATE
from contexture.storage.shrink_report import SHOWN, ShrinkReport
from contexture.storage.state import StatePointer, StateReader
from spark_jobs.entities.collisions import find_collisions, mark_quarantined, write_collisions
from spark_jobs.entities.rows import DELETIONS_FILE, narrow_rows, without_outdated
from spark_jobs.entities.sequence import NotifiedSequence, latest_rows, shards_of
from spark_jobs.entities.superseded import discard_quarantined, save_superseded, without_older_objects
from spark_jobs.shared.context import PART_BITS, StageContext

_FILE = "events.npy"


@dataclass(frozen=True, slots=True, eq=False)
class EventPlan:
    """The events that are sent, in order.

    Attributes:
        events: their numbers, ascending.
        batch: the batch of each, counted from 0.
        sub_batch: the sub-batch of each within its batch, counted from 0.
        final: whether the target has the content of the event at the end of the run, so that state has it too.
    """

    events: Any
    batch: Any
    sub_batch: Any
    final: Any

    @property
    def batches(self) -> int:
        """The number of batches."""
        return int(self.batch[-1]) + 1 if len(self.batch) else 0

    def placed(self, rendered: Any) -> Any:
        """Returns the rendered events that are sent, with `batch`, `sub_batch` and `final`; the others are dropped."""
        numbers = rendered.column("event").to_numpy()
        places = np.searchsorted(self.events, numbers)
        places[places == len(self.events)] = 0
        kept = self.events[places] == numbers if len(self.events) else np.zeros(len(numbers), dtype=bool)
        if not kept.all():
            rendered, places = rendered.filter(pa.array(kept)), places[kept]
        placed = rendered.append_column("batch", pa.array(self.batch[places]))
        placed = placed.append_column("sub_batch", pa.array(self.sub_batch[places]))
        return placed.append_column("final", pa.array(self.final[places].astype(bool)))

    def save(self, work: StoredFolder) -> None:
        """Writes the plan to the work folder."""
        content = io.BytesIO()
        np.save(content, np.stack([self.events, self.batch, self.sub_batch, self.final]).astype(np.int64))
        work.write(_FILE, content.getvalue())

    @classmethod
    def load(cls, work: StoredFolder) -> EventPlan:
        """Reads the plan from the work folder."""
        return cls(*np.load(io.BytesIO(work.read(_FILE))))


def plan_sent_events(
    context: StageContext, snapshot: Any, comparison: Comparison, sequence: NotifiedSequence | None
) -> EventPlan:
    """Plans the events that are sent, in order, and writes the deletions between them.

    Args:
        context: of the stage.
        snapshot: narrow rows, in order of events.
        comparison: of the snapshot with state.
        sequence: the notified events; None if there are none, so that state alone decides what is sent.
    """
    kept = np.asarray(pc.equal(snapshot.column("verdict"), ChangeKind.SEND)).copy()
    final = np.ones(len(kept), dtype=bool)
    kept[comparison.superseded] = False
    kept[comparison.conflicting] = False
    if sequence is not None:
        kept[sequence.events.evaluated] = final[sequence.events.evaluated] = False
        kept[sequence.events.sent] = final[sequence.events.final] = True
    sent = snapshot.select(["event", "received_at", "topic"]).filter(pa.array(kept))
    events = sent.column("event").to_numpy()
    cuts = [] if sequence is None else np.searchsorted(np.flatnonzero(kept), sequence.notified_by)
    batch, sub_batch, deletion_batches = _plan_batches(context, sent, cuts)
    if sequence is not None:
        sequence.save(context, snapshot, deletion_batches)
    return EventPlan(events, batch, sub_batch, final[kept])


def _plan_batches(context: StageContext, sent: Any, cuts: Any) -> tuple[Any, Any, list[int]]:
    """Returns batch and sub-batch of each event, and the batch of each deletion between them.

    Args:
        context: of the stage.
        sent: the events.
        cuts: the number of events before each deletion, never descending.
    """
    topics = sent.column("topic").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    arrived = sent.column("received_at").cast(pa.int64()).to_numpy()
    batches = NgsiPublication.of(context.publication).batches
    batch, sub_batch = np.empty(len(topics), np.int64), np.empty(len(topics), np.int64)
    deletion_batches: list[int] = []
    start = following = 0
    for cut in [*cuts, len(topics)]:
        if cut > start:
            planned = plan_sub_batches(
                arrived[start:cut],
                topics[start:cut],
                batch_size=batches.batch_size,
                batch_timeout_seconds=batches.batch_timeout,
            )
            batch[start:cut], sub_batch[start:cut] = planned.batch + following, planned.sub_batch
            start, following = cut, following + int(planned.batch[-1]) + 1
        deletion_batches.append(following)
        following += 1
    return batch, sub_batch, deletion_batches[:-1]


RULE = "duplicate"
MESSAGE = "the source shows other content for the same identity and the same time of change"


def quarantine_conflicts(context: StageContext, events: Any) -> None:
    """Writes the landing rows of contradicting events to quarantine."""
    if not len(events):
        return
    ordinals = pa.array(np.unique(events >> PART_BITS))
    dataset = context.landing.dataset(skips_others=True)
    rows = dataset.to_table(filter=ds.field("ordinal").isin(ordinals))
    for name, text in (("rule", RULE), ("severity", "error"), ("message", MESSAGE)):
        rows = rows.append_column(name, pa.array([text] * rows.num_rows))
    context.quarantine.write_table("conflicts.parquet", rows.select(QUARANTINE.names).cast(QUARANTINE))


def state_only_rows(held: Any, comparison: Comparison, moment: datetime) -> Any:
    """Returns the state rows of which only marks change, once each, with all their new marks.

    Args:
        held: the whole rows of state to which the comparison's numbers refer.
        comparison: of the snapshot with these rows.
        moment: when the snapshot was read.
    """
    changed = [comparison.first_absent, comparison.returned, comparison.withheld, comparison.released]
    rows = np.unique(np.concatenate([*changed, comparison.rescheduled])).astype(np.int64)
    first_absent, returned, withheld, released = (pa.array(np.isin(rows, places)) for places in changed)
    table = held.take(pa.array(rows))
    now = pa.scalar(moment.astimezone(UTC), STATE.field("missing_since").type)
    never = pa.scalar(None, now.type)
    missing_since = pc.if_else(first_absent, now, pc.if_else(returned, never, table.column("missing_since")))
    is_withheld = pc.or_(withheld, pc.and_not(table.column("withheld"), released))
    table = table.set_column(STATE.get_field_index("missing_since"), STATE.field("missing_since"), missing_since)
    table = table.set_column(STATE.get_field_index("withheld"), STATE.field("withheld"), is_withheld)
    return _with_new_ends(table, np.isin(rows, comparison.rescheduled), comparison.ends)


def _with_new_ends(table: Any, places: Any, ends: Any) -> Any:
    """Returns the table with these times of expiry at these places, both in order."""
    if not places.any():
        return table
    field = STATE.field("expires_at")
    held = table.column("expires_at").combine_chunks()
    values = ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends
    changed = pc.replace_with_mask(held, pa.array(places), values.cast(field.type))
    return table.set_column(STATE.get_field_index("expires_at"), field, changed)


COMPARED = ["identity_hash", "entity_hash", "missing_since", "withheld", "expires_at"]
HELD_ROWS = ("first_absent", "vanished", "removed", "returned", "withheld", "released", "rescheduled")
"""The fields of a comparison that are row numbers of state."""


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """The counts and event numbers that planning found; the rows themselves are on storage.

    Attributes:
        conflicting: events to quarantine because they contradict each other.
        collided: events to quarantine because their topic belongs to another identity.
        repeated: accepted events that are dropped because the snapshot has a newer or an equal one of the identity.
        upserts: events that will be sent.
        deletes: identities whose tombstones will be sent.
        absent: identities missing for the first time; nothing is sent for them yet.
        dropped: identities that vanish beyond the shrink limit, if that is no error.
        contradictions: events that contradict another one, whether refused or not.
        collisions: events whose topic belongs to another identity, whether refused or not.
        skipped_newer: accepted events of an earlier time that are dropped because the target has newer ones.
        sent_in_sequence: notified events that are sent because they differ from the one before of their identity.
        unchanged_in_sequence: notified events that are not sent because they equal the one before of their identity.
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
    sent_in_sequence: Any = ()
    unchanged_in_sequence: Any = ()


def plan(
    context: StageContext, *, landed: int, proves_absence: bool, confirmed_shrink: bool, as_of: datetime | None
) -> EntityPlan:
    """Compares the snapshot with state, guards against mass deletion, plans batches, and writes the plan.

    Args:
        context: of the stage.
        landed: the number of landed objects.
        proves_absence: the snapshot is complete enough to show what is gone.
        confirmed_shrink: a person has approved the deletion of many identities.
        as_of: the source's clock when it was read.

    Raises:
        ConfigurationError: more identities vanish than the shrink limit allows.
        RetriableError: the storage does not list all files of the evaluation.
    """
    pointer = StatePointer.model_validate_json(context.pointer_json)
    reader = context.store.state.reader(pointer)
    rows = narrow_rows(context, landed)
    snapshot, older = without_older_objects(rows)
    snapshot, skipped = without_outdated(context, snapshot, reader)
    collisions = find_collisions(NgsiPublication.of(context.publication), snapshot, reader)
    write_collisions(context, snapshot, collisions)
    collided = np.array([found.row for found in collisions if found.refused], dtype=np.int64)
    snapshot = mark_quarantined(snapshot, collided)
    proves_absence = proves_absence and context.publication.source.detect_deletions
    held = reader.table(COMPARED) if proves_absence else reader.of_entities(snapshot["entity_hash"], COMPARED)
    comparison, touched = _read_touched(reader, held, _compare(context, snapshot, held, proves_absence, as_of))
    # Identities whose announced end has come are no sign of a broken read.
    vanishing = len(comparison.vanished) - comparison.expired
    gone = touched.column("identity").take(pa.array(comparison.vanished))
    dropped = 0 if confirmed_shrink else _guard_deletions(context, vanishing, pointer.identities, gone)
    sequence = _notified_sequence(context, reader, snapshot, comparison)
    sent = plan_sent_events(context, snapshot, comparison, sequence)
    sent.save(context.work)
    deleted = _deleted_rows(touched, comparison, sequence)
    _write_deletions(context, deleted)
    _write_state_only_rows(context, touched, comparison)
    events = snapshot.column("event").to_numpy()
    # Objects that are refused because they lack an id share an identity, but are different objects.
    again = comparison.superseded[np.asarray(snapshot.column("identified"))[comparison.superseded]]
    superseded = np.union1d(older.column("event").to_numpy(), events[again])
    save_superseded(context.work, superseded)
    discard_quarantined(context, rows, superseded)
    return EntityPlan(
        conflicting=events[comparison.conflicting],
        collided=events[collided],
        repeated=_count_accepted(older) + _count_accepted(snapshot.take(pa.array(comparison.superseded))),
        upserts=len(sent.events),
        deletes=deleted.num_rows + (sequence.notified_deletions.num_rows if sequence else 0),
        absent=len(comparison.first_absent),
        dropped=dropped,
        contradictions=comparison.contradictions,
        collisions=len(collisions),
        skipped_newer=skipped,
        sent_in_sequence=events[sequence.events.sent] if sequence else (),
        unchanged_in_sequence=events[sequence.events.unchanged] if sequence else (),
    )


def _count_accepted(rows: Any) -> int:
    return int((np.asarray(rows.column("verdict")) <= ChangeKind.UNCHANGED).sum())


def _guard_deletions(context: StageContext, vanishing: int, held: int, gone: Any) -> int:
    """Raises if too many identities vanish and `count-drop` is an error; else returns their number beyond the limit.

    The first identities are written to the shrink report, for the person who is asked to approve the deletion.
    """
    limit = context.publication.source.shrink_limit
    guard = ShrinkGuard(limit.share, limit.count)
    if not guard.exceeded(vanishing, held):
        return 0
    if severities(context.publication.quality.rules).get("count-drop") != "error":
        return vanishing
    report = ShrinkReport.of(gone.slice(0, SHOWN).to_pylist(), count=vanishing, held=held, limit=guard.limit(held))
    context.store.run(context.order.run).write_shrink_report(report)
    guard.check(vanishing, held, confirmed=False)
    return 0


def _compare(
    context: StageContext, snapshot: Any, held: Any, proves_absence: bool, as_of: datetime | None
) -> Comparison:
    last_wins = severities(context.publication.quality.rules).get(RULE) != "error"
    latest = latest_rows(snapshot) if context.in_turn else None
    compared = snapshot if latest is None else snapshot.take(pa.array(latest))
    comparison = compare(compared, held, proves_absence=proves_absence, last_wins=last_wins, as_of=as_of)
    if latest is not None:
        numbered = {name: latest[getattr(comparison, name)] for name in ("superseded", "conflicting")}
        comparison = replace(comparison, **numbered)
    if context.order.retry is not None or context.is_backfill:
        # These events are of an earlier time: what they lack may have been added since, and their ends may have moved.
        return replace(
            comparison, removed=comparison.removed[:0], rescheduled=comparison.rescheduled[:0], ends=comparison.ends[:0]
        )
    if context.publication.source.detect_deletions:
        return comparison
    return replace(comparison, removed=comparison.removed[:0])


def _notified_sequence(
    context: StageContext, reader: StateReader, snapshot: Any, comparison: Comparison
) -> NotifiedSequence | None:
    if not context.in_turn:
        return None
    return NotifiedSequence.of(context, reader, snapshot, np.union1d(comparison.superseded, comparison.conflicting))


def _read_touched(reader: StateReader, held: Any, comparison: Comparison) -> tuple[Comparison, Any]:
    """Returns the comparison with new row numbers, and the whole state rows that these refer to; usually few."""
    rows = {name: getattr(comparison, name) for name in HELD_ROWS}
    touched = np.unique(np.concatenate(list(rows.values()))).astype(np.int64)
    hashes = held.select(["identity_hash", "entity_hash"]).take(pa.array(touched))
    whole = reader.of_entities(hashes["entity_hash"], STATE.names)
    whole = whole.filter(pc.is_in(whole["identity_hash"], value_set=pc.unique(hashes["identity_hash"])))
    # Both are in the same order.
    return replace(comparison, **{name: np.searchsorted(touched, found) for name, found in rows.items()}), whole


def _deleted_rows(held: Any, comparison: Comparison, sequence: NotifiedSequence | None) -> Any:
    """Returns the state rows whose tombstones are sent after all other records."""
    gone = held.take(pa.array(np.union1d(comparison.vanished, comparison.removed)))
    if sequence is None:
        return gone
    return pa.concat_tables(
        [gone.filter(pc.invert(pc.is_in(gone["identity_hash"], value_set=sequence.ended))), sequence.inferred_deletions]
    )


def _write_state_only_rows(context: StageContext, held: Any, comparison: Comparison) -> None:
    rows = state_only_rows(held, comparison, context.reference_time)
    context.records.state_delta.write_table("marks.parquet", rows, compression="zstd")


def _write_deletions(context: StageContext, gone: Any) -> None:
    shards = pa.array(shards_of(gone, context), pa.int32())
    context.work.write_table(DELETIONS_FILE, gone.append_column("shard", shards), compression="zstd")
