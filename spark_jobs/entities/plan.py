"""Planning on the driver: from narrow rows and state to the content of each shard.

Only hashes, times, verdicts and topics come here. The plan is written beside the rendered events, where the tasks that
assemble the shards find it: which events to send in which batches, and which identities to delete.
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
from spark_jobs.entities.collisions import find_collisions, note_collisions, refusing
from spark_jobs.entities.rows import DELETIONS_FILE, narrow_rows, without_outdated
from spark_jobs.entities.sequence import NotifiedSequence, latest_rows, shards_of
from spark_jobs.entities.superseded import discard_quarantined, save_superseded, without_older_objects
from spark_jobs.shared.context import PART_BITS, StageContext

_FILE = "events.npy"


@dataclass(frozen=True, slots=True, eq=False)
class EventPlan:
    """The events that are sent, in order.

    Attributes:
        events: their numbers, rising.
        batch: the batch of each, counted from 0.
        sub_batch: the sub-batch of each within its batch, counted from 0.
        final: whether the target has the content of the event in the end, so that state does.
    """

    events: Any
    batch: Any
    sub_batch: Any
    final: Any

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return int(self.batch[-1]) + 1 if len(self.batch) else 0

    def placed(self, rendered: Any) -> Any:
        """The rendered events that are sent, with `batch`, `sub_batch` and `final`; the others are left out."""
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
        """The plan that lies in the work folder."""
        return cls(*np.load(io.BytesIO(work.read(_FILE))))


def sent_events(
    preparation: StageContext, snapshot: Any, comparison: Comparison, turns: NotifiedSequence | None
) -> EventPlan:
    """The events that are sent, in order; what turns add to them is written.

    Args:
        preparation: what is prepared.
        snapshot: narrow rows, in order of events.
        comparison: of the snapshot with state.
        turns: events told one after the other; None where state alone says what is sent.
    """
    kept = np.asarray(pc.equal(snapshot.column("verdict"), ChangeKind.SEND)).copy()
    final = np.ones(len(kept), dtype=bool)
    kept[comparison.superseded] = False
    kept[comparison.conflicting] = False
    if turns is not None:
        kept[turns.succession.evaluated] = final[turns.succession.evaluated] = False
        kept[turns.succession.sent] = final[turns.succession.final] = True
    sent = snapshot.select(["event", "received_at", "topic"]).filter(pa.array(kept))
    events = sent.column("event").to_numpy()
    cuts = [] if turns is None else np.searchsorted(np.flatnonzero(kept), turns.told_by)
    batch, sub_batch, told = _batches(preparation, sent, cuts)
    if turns is not None:
        turns.save(preparation, snapshot, told)
    return EventPlan(events, batch, sub_batch, final[kept])


def _batches(preparation: StageContext, sent: Any, cuts: Any) -> tuple[Any, Any, list[int]]:
    """Batch and sub-batch of each event, and the batch that each deletion among them has for itself.

    Args:
        preparation: what is prepared.
        sent: the events.
        cuts: how many of them stand before each deletion; never falling.
    """
    topics = sent.column("topic").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    arrived = sent.column("received_at").cast(pa.int64()).to_numpy()
    batches = NgsiPublication.of(preparation.publication).batches
    batch, sub_batch = np.empty(len(topics), np.int64), np.empty(len(topics), np.int64)
    told: list[int] = []
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
        told.append(following)
        following += 1
    return batch, sub_batch, told[:-1]


RULE = "duplicate"
MESSAGE = "the source shows other content for the same identity and the same time of change"


def quarantine_conflicts(preparation: StageContext, events: Any) -> None:
    """Writes the landing rows of contradicting events to quarantine."""
    if not len(events):
        return
    ordinals = pa.array(np.unique(events >> PART_BITS))
    dataset = preparation.landing.dataset(skips_others=True)
    rows = dataset.to_table(filter=ds.field("ordinal").isin(ordinals))
    for name, text in (("rule", RULE), ("severity", "error"), ("message", MESSAGE)):
        rows = rows.append_column(name, pa.array([text] * rows.num_rows))
    preparation.quarantine.write_table("conflicts.parquet", rows.select(QUARANTINE.names).cast(QUARANTINE))


def state_only_rows(held: Any, comparison: Comparison, moment: datetime) -> Any:
    """The state's rows whose marks change, once each, with all their new marks.

    Args:
        held: the state's whole rows, which the comparison's numbers refer to.
        comparison: what the snapshot means for them.
        moment: when it was read.
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
    return _rescheduled(table, np.isin(rows, comparison.rescheduled), comparison.ends)


def _rescheduled(table: Any, places: Any, ends: Any) -> Any:
    """The table with these times of ending at these places, both in order."""
    if not places.any():
        return table
    field = STATE.field("expires_at")
    held = table.column("expires_at").combine_chunks()
    values = ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends
    changed = pc.replace_with_mask(held, pa.array(places), values.cast(field.type))
    return table.set_column(STATE.get_field_index("expires_at"), field, changed)


COMPARED = ["identity_hash", "entity_hash", "missing_since", "withheld", "expires_at"]
HELD_ROWS = ("first_absent", "vanished", "removed", "returned", "withheld", "released", "rescheduled")
"""Fields of a comparison that number rows of state."""


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """What planning found, in numbers; the rows themselves lie on storage.

    Attributes:
        conflicting: events to be quarantined because they contradict each other.
        collided: events to be quarantined because their topic is another identity's.
        repeated: accepted events left out because the snapshot has a newer one of the same identity, or has it twice.
        upserts: events that will be sent.
        deletes: identities whose tombstones will be sent.
        absent: identities missing for the first time; nothing is sent for them yet.
        dropped: identities that vanish beyond the shrink limit, where that is no error.
        contradictions: events that contradict another one, whether refused or not.
        collisions: events whose topic is another identity's, whether refused or not.
        skipped_newer: accepted events of an earlier time that are left out because the target holds newer ones.
        told, told_before: events that are sent, and those that are not, because each was compared with the one before
            it, and not with state alone.
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
    told: Any = ()
    told_before: Any = ()


def plan(
    preparation: StageContext, *, landed: int, proves_absence: bool, confirmed_shrink: bool, as_of: datetime | None
) -> EntityPlan:
    """Compares, guards, plans batches, and writes the plan.

    Args:
        preparation: what is prepared.
        landed: how many objects were landed.
        proves_absence: the snapshot is complete enough to show what is gone.
        confirmed_shrink: a person has confirmed that much may be deleted.
        as_of: the source's clock when it was read.

    Raises:
        ConfigurationError: more identities vanish than may.
        RetriableError: the storage does not show all that was found out about them.
    """
    pointer = StatePointer.model_validate_json(preparation.pointer_json)
    reader = preparation.store.state.reader(pointer)
    rows = narrow_rows(preparation, landed)
    snapshot, older = without_older_objects(rows)
    snapshot, skipped = without_outdated(preparation, snapshot, reader)
    collisions = find_collisions(NgsiPublication.of(preparation.publication), snapshot, reader)
    note_collisions(preparation, snapshot, collisions)
    collided = np.array([found.row for found in collisions if found.refused], dtype=np.int64)
    snapshot = refusing(snapshot, collided)
    proves_absence = proves_absence and preparation.publication.source.detect_deletions
    held = reader.table(COMPARED) if proves_absence else reader.of_entities(snapshot["entity_hash"], COMPARED)
    comparison, touched = _touched(reader, held, _compared(preparation, snapshot, held, proves_absence, as_of))
    # What has said that it would end is no sign of a broken read.
    vanishing = len(comparison.vanished) - comparison.expired
    gone = touched.column("identity").take(pa.array(comparison.vanished))
    dropped = 0 if confirmed_shrink else _guarded(preparation, vanishing, pointer.identities, gone)
    turns = _turns(preparation, reader, snapshot, comparison)
    sent = sent_events(preparation, snapshot, comparison, turns)
    sent.save(preparation.work)
    deleted = _gone(touched, comparison, turns)
    _write_deletions(preparation, deleted)
    _write_marks(preparation, touched, comparison)
    events = snapshot.column("event").to_numpy()
    # Objects that are refused because they lack an id have an identity in common, and are different ones all the same.
    again = comparison.superseded[np.asarray(snapshot.column("identified"))[comparison.superseded]]
    superseded = np.union1d(older.column("event").to_numpy(), events[again])
    save_superseded(preparation.work, superseded)
    discard_quarantined(preparation, rows, superseded)
    return EntityPlan(
        conflicting=events[comparison.conflicting],
        collided=events[collided],
        repeated=_accepted(older) + _accepted(snapshot.take(pa.array(comparison.superseded))),
        upserts=len(sent.events),
        deletes=deleted.num_rows + (turns.told.num_rows if turns else 0),
        absent=len(comparison.first_absent),
        dropped=dropped,
        contradictions=comparison.contradictions,
        collisions=len(collisions),
        skipped_newer=skipped,
        told=events[turns.succession.sent] if turns else (),
        told_before=events[turns.succession.unchanged] if turns else (),
    )


def _accepted(rows: Any) -> int:
    return int((np.asarray(rows.column("verdict")) <= ChangeKind.UNCHANGED).sum())


def _guarded(preparation: StageContext, vanishing: int, held: int, gone: Any) -> int:
    """Holds the deletion of many up, where `count-drop` is an error; else says how many go beyond the limit.

    What would have gone is kept for the person who is asked whether it may.
    """
    limit = preparation.publication.source.shrink_limit
    guard = ShrinkGuard(limit.share, limit.count)
    if not guard.exceeded(vanishing, held):
        return 0
    if severities(preparation.publication.quality.rules).get("count-drop") != "error":
        return vanishing
    report = ShrinkReport.of(gone.slice(0, SHOWN).to_pylist(), count=vanishing, held=held, limit=guard.limit(held))
    preparation.store.run(preparation.order.run).write_shrink_report(report)
    guard.check(vanishing, held, confirmed=False)
    return 0


def _compared(
    preparation: StageContext, snapshot: Any, held: Any, proves_absence: bool, as_of: datetime | None
) -> Comparison:
    last_wins = severities(preparation.publication.quality.rules).get(RULE) != "error"
    latest = latest_rows(snapshot) if preparation.in_turn else None
    compared = snapshot if latest is None else snapshot.take(pa.array(latest))
    comparison = compare(compared, held, proves_absence=proves_absence, last_wins=last_wins, as_of=as_of)
    if latest is not None:
        numbered = {name: latest[getattr(comparison, name)] for name in ("superseded", "conflicting")}
        comparison = replace(comparison, **numbered)
    if preparation.order.retry is not None or preparation.is_backfill:
        # What is tried or sent again was so some time ago: what it lacks may have come since, and its end have moved.
        return replace(
            comparison, removed=comparison.removed[:0], rescheduled=comparison.rescheduled[:0], ends=comparison.ends[:0]
        )
    if preparation.publication.source.detect_deletions:
        return comparison
    return replace(comparison, removed=comparison.removed[:0])


def _turns(
    preparation: StageContext, reader: StateReader, snapshot: Any, comparison: Comparison
) -> NotifiedSequence | None:
    if not preparation.in_turn:
        return None
    return NotifiedSequence.of(preparation, reader, snapshot, np.union1d(comparison.superseded, comparison.conflicting))


def _touched(reader: StateReader, held: Any, comparison: Comparison) -> tuple[Comparison, Any]:
    """The state's whole rows that the comparison touches, few as a rule, and the comparison with their numbers."""
    rows = {name: getattr(comparison, name) for name in HELD_ROWS}
    touched = np.unique(np.concatenate(list(rows.values()))).astype(np.int64)
    hashes = held.select(["identity_hash", "entity_hash"]).take(pa.array(touched))
    whole = reader.of_entities(hashes["entity_hash"], STATE.names)
    whole = whole.filter(pc.is_in(whole["identity_hash"], value_set=pc.unique(hashes["identity_hash"])))
    # Both are in the same order.
    return replace(comparison, **{name: np.searchsorted(touched, found) for name, found in rows.items()}), whole


def _gone(held: Any, comparison: Comparison, turns: NotifiedSequence | None) -> Any:
    """The state rows whose tombstones follow on all other records."""
    gone = held.take(pa.array(np.union1d(comparison.vanished, comparison.removed)))
    if turns is None:
        return gone
    return pa.concat_tables(
        [gone.filter(pc.invert(pc.is_in(gone["identity_hash"], value_set=turns.ended))), turns.at_end]
    )


def _write_marks(preparation: StageContext, held: Any, comparison: Comparison) -> None:
    rows = state_only_rows(held, comparison, preparation.reference_time)
    preparation.records.state_delta.write_table("marks.parquet", rows, compression="zstd")


def _write_deletions(preparation: StageContext, gone: Any) -> None:
    shards = pa.array(shards_of(gone, preparation), pa.int32())
    preparation.work.write_table(DELETIONS_FILE, gone.append_column("shard", shards), compression="zstd")
