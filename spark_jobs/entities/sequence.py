"""The order of notifications, also of those that were swapped on their way, and the deletions between them.

A broker sends each notification on a connection of its own. Two that it sends shortly after each other can arrive in
the other order (a real Orion: 1 of 173 pairs of a creation and its deletion). If both contain the time of change of
their entity, that time decides, and not the arrival.

The tombstone of a notified deletion is sent at its place, between the events of its identity before and after. Its
topics and key are those that were used last: by an earlier event of the same run, or else by state.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.errors import RejectedError
from contexture.events import parse_json
from contexture.kafka.partitioner import shards_for
from contexture.publications import NgsiPublication
from contexture.records.changes import Deletion, EventSequence, find_superseded_notifications, replay_sequence
from contexture.records.messages.envelopes import Envelope
from contexture.sources.ngsi.entity import broker_time, system_time
from contexture.sources.ngsi.notifications.notification import Form, NotifiedEntity
from contexture.sources.ngsi.notifications.parsing import parse_notified
from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import STATE
from contexture.storage.state import StateReader
from contexture.storage.state_files import completed
from spark_jobs.entities.render import with_tombstone_headers
from spark_jobs.entities.rows import RENDERED, RENDERED_FOLDER
from spark_jobs.shared.context import StageContext

_FILE = "notified_deletions.parquet"
_HELD = ["identity_hash", "entity_hash", "content_hash"]
_OF_RENDERED = [
    *("event", "topics", "key", "identity", "identity_hash", "entity_hash", "content_hash"),
    *("modified_at", "expires_at"),
]

NOTIFIED_DELETION = pa.schema(
    [
        *STATE,
        pa.field("event", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("final", pa.bool_(), nullable=False),
    ]
)
"""A deletion between other events: the state row that it ends, its place, and whether no event of it follows."""


@dataclass(frozen=True, slots=True, eq=False)
class NotifiedSequence:
    """The notified events of a run, in their order, with the deletions between them.

    Attributes:
        events: which of them are sent; row numbers of the snapshot.
        inferred_deletions: state rows that no notification deleted, but that are gone at the end.
        notified_deletions: state rows whose deletion was notified, in order; a row may occur again.
        notified_by: the row of the snapshot that notified each deletion.
    """

    events: EventSequence
    inferred_deletions: Any
    notified_deletions: Any
    notified_by: Any

    @classmethod
    def of(cls, context: StageContext, reader: StateReader, snapshot: Any, left_out: Any) -> NotifiedSequence:
        """Evaluates the notified entities of a snapshot; `left_out` is that of `records.changes.replay_sequence`."""
        notified = snapshot.column("entity_hash").filter(snapshot.column("notified"))
        held = reader.of_entities(notified.combine_chunks(), _HELD)
        repeats = not NgsiPublication.of(context.publication).source.suppress_unchanged
        events = replay_sequence(
            snapshot,
            held,
            left_out=left_out,
            deletes=context.publication.source.detect_deletions and context.order.retry is None,
            resend=context.everything or repeats,
            resend_notified=context.order.republish or context.is_backfill or repeats,
        )
        rows = _ended_rows(context, reader, snapshot, held, events.deletions)
        notified_by = [deletion.row for deletion in events.deletions]
        is_notified = pa.array([row is not None for row in notified_by], pa.bool_())
        by = np.array([row for row in notified_by if row is not None], dtype=np.int64)
        return cls(events, rows.filter(pc.invert(is_notified)), rows.filter(is_notified), by)

    @property
    def ended(self) -> Any:
        """The identity hashes of all deleted state rows."""
        return pa.concat_tables([self.inferred_deletions, self.notified_deletions]).column("identity_hash")

    def save(self, context: StageContext, snapshot: Any, batches: Any) -> None:
        """Writes the deletions between other events, each with its batch, where the tasks of shards read them."""
        events = snapshot.column("event").to_numpy()
        kept = pc.unique(snapshot.column("identity_hash").take(pa.array(self.events.final)))
        arrived = snapshot.column("received_at").take(pa.array(self.notified_by))
        table = self.notified_deletions.append_column("event", pa.array(events[self.notified_by]))
        table = table.append_column("shard", pa.array(shards_of(self.notified_deletions, context), pa.int32()))
        table = table.append_column(
            "timestamp", pc.cast(arrived, NOTIFIED_DELETION.field("timestamp").type, safe=False)
        )
        table = table.append_column("batch", pa.array(np.asarray(batches, dtype=np.int64)))
        has_successor = pc.is_in(self.notified_deletions.column("identity_hash"), value_set=kept)
        table = table.append_column("final", pc.invert(has_successor))
        context.work.write_table(_FILE, table.cast(NOTIFIED_DELETION))


def latest_rows(snapshot: Any) -> Any:
    """Returns the row numbers of a snapshot, with only the last notified row of each identity."""
    return np.delete(np.arange(snapshot.num_rows), find_superseded_notifications(snapshot))


def shards_of(ended: Any, context: StageContext) -> Any:
    """Returns the shard of each ended state row: by key, or by topic if lines are joined or there is no key."""
    topics, keys = ended.column("topics").to_pylist(), ended.column("key").to_pylist()
    by = [
        names[0].encode() if key is None or context.joins_lines else key
        for names, key in zip(topics, keys, strict=True)
    ]
    return shards_for(by, context.publication.publish.shards)


class SequencedDeletions:
    """The deletions between the events of one shard, which are taken one after the other."""

    def __init__(self, work: StoredFolder, shard: int, envelope: Envelope | None = None) -> None:
        table = work.table(_FILE) if work.exists(_FILE) else NOTIFIED_DELETION.empty_table()
        self.batches = 1 + max(table.column("batch").to_pylist(), default=-1)
        self._rest = with_tombstone_headers(table.filter(pc.equal(table.column("shard"), shard)), envelope)

    def merged(self, placed: Any) -> Any:
        """Adds the deletions up to the last of the placed events, in order; the column `removed` marks deletions."""
        upserts = placed.append_column("removed", pa.repeat(pa.scalar(False), placed.num_rows))
        last = placed.column("event")[placed.num_rows - 1]
        due = pc.sum(pc.less_equal(self._rest.column("event"), last)).as_py() or 0
        if not due:
            return upserts
        table = pa.concat_tables([upserts, _as_events(self._take(due), upserts.schema)])
        return table.sort_by("event")

    def rest(self, schema: Any) -> Any:
        """Returns the deletions after the last event, as events of this schema."""
        return _as_events(self._take(self._rest.num_rows), schema)

    def _take(self, count: int) -> Any:
        taken, self._rest = self._rest.slice(0, count), self._rest.slice(count)
        return taken


PLACED = pa.schema(
    [
        *RENDERED,
        pa.field("batch", pa.int64()),
        pa.field("sub_batch", pa.int64()),
        pa.field("final", pa.bool_()),
        pa.field("removed", pa.bool_()),
    ]
)
"""An event on its way into a shard; it has no value if it is `removed`. Headers that vary follow."""


def _as_events(deletions: Any, schema: Any) -> Any:
    count = deletions.num_rows
    known = {name: deletions.column(name) for name in schema.names if name in deletions.column_names}
    added = {
        "value": pa.nulls(count, pa.binary()),
        "sub_batch": pa.array(np.zeros(count, dtype=np.int64)),
        "removed": pa.repeat(pa.scalar(True), count),
    }
    columns = known | added
    return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)


def _ended_rows(
    context: StageContext, reader: StateReader, snapshot: Any, held: Any, deletions: Sequence[Deletion]
) -> Any:
    """Returns the state row that each deletion ends, as it is at that time."""
    by_state = [number for number, deletion in enumerate(deletions) if deletion.before.held is not None]
    by_event = [number for number, deletion in enumerate(deletions) if deletion.before.held is None]
    of_state = _held_rows(reader, held, [deletions[number].before.held for number in by_state])
    of_events = _rendered_rows(context, snapshot, [deletions[number].before.row for number in by_event])
    order = np.argsort(np.array([*by_state, *by_event], dtype=np.int64), kind="stable")
    return pa.concat_tables([of_state, of_events]).take(pa.array(order))


def _held_rows(reader: StateReader, held: Any, numbers: Sequence[int | None]) -> Any:
    wanted = held.take(pa.array(numbers, pa.int64()))
    whole = reader.of_entities(wanted.column("entity_hash").combine_chunks(), STATE.names)
    return whole.take(pc.index_in(wanted.column("identity_hash"), value_set=whole.column("identity_hash"))).cast(STATE)


def _rendered_rows(context: StageContext, snapshot: Any, rows: Sequence[int | None]) -> Any:
    if not rows:
        return STATE.empty_table()
    events = snapshot.column("event").take(pa.array(rows, pa.int64()))
    rendered = context.work.folder(RENDERED_FOLDER).dataset()
    found = rendered.to_table(columns=_OF_RENDERED, filter=ds.field("event").isin(pc.unique(events)))
    found = found.take(pc.index_in(events, value_set=found.column("event")))
    count = found.num_rows
    columns = {name: found.column(name) for name in _OF_RENDERED if name != "event"}
    columns["withheld"] = columns["removed"] = pa.repeat(pa.scalar(False), count)
    columns["sequence"] = pa.repeat(pa.scalar(context.order.sequence, pa.int64()), count)
    return completed(pa.table(columns), STATE.names).cast(STATE)


_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_UNKNOWN = -(1 << 62)
_TIMES = (b'"dateModified"', b'"modifiedAt"', b'"deletedAt"')


class NotifiedOrder:
    """The notified entities of one claim in order of arrival; each takes 17 bytes of memory."""

    def __init__(self) -> None:
        self._identities = array("q")
        self._times = array("q")
        self._deletes = array("b")

    def add(self, entity: NotifiedEntity, form: Form) -> None:
        """Adds the entity that arrived next."""
        key = f"{entity.service_path}\0{entity.id}\0{entity.type}".encode()
        self._identities.append(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True))
        time = change_time(entity, form)
        self._times.append(_UNKNOWN if time is None else (time - _EPOCH) // _MICROSECOND)
        self._deletes.append(entity.operation == "delete")

    def add_unreadable(self) -> None:
        """Adds what arrived next and is no readable notification; it keeps its place."""
        self._identities.append(0)
        self._times.append(_UNKNOWN)
        self._deletes.append(0)

    def moves(self) -> dict[int, int]:
        """Returns the new place of each entity that moves, by its place of arrival, both counted from 0.

        Only places of one entity are exchanged. A notification without a time keeps its place, and none moves past it.
        """
        if not self._times:
            return {}
        identities = np.frombuffer(self._identities, dtype=np.int64)
        times = np.frombuffer(self._times, dtype=np.int64)[by_identity := np.argsort(identities, kind="stable")]
        deletes = np.frombuffer(self._deletes, dtype=np.int8)[by_identity]
        follows = (np.diff(identities[by_identity]) == 0) & (times[1:] != _UNKNOWN) & (times[:-1] != _UNKNOWN)
        late = (times[:-1] > times[1:]) | ((times[:-1] == times[1:]) & (deletes[:-1] > deletes[1:]))
        moved: dict[int, int] = {}
        for start, end in _ranges_to_sort(follows, np.flatnonzero(follows & late)):
            places = by_identity[start:end]
            order = _sort_by_time(times[start:end].tolist(), deletes[start:end].tolist())
            moved.update(
                (int(places[old]), int(places[new])) for new, old in enumerate(order) if places[old] != places[new]
            )
        return moved


def change_time(entity: NotifiedEntity, form: Form) -> datetime | None:
    """Returns when the broker changed the entity, UTC; None if the notification does not contain it for certain.

    NGSIv2: the builtin `dateModified`, which for a deletion is the time of its last state. NGSI-LD: `modifiedAt`, or
    `deletedAt` for a deletion.
    """
    if not any(name in entity.body for name in _TIMES):
        return None
    try:
        if form == "ngsi-ld" and entity.operation == "delete":
            document = parse_json(entity.body)
            return broker_time(system_time(document.get("deletedAt"))) if isinstance(document, dict) else None
        return parse_notified(entity.body, form, "", entity.service_path).modified_at
    except (RejectedError, ValueError, TypeError):
        return None


def _ranges_to_sort(follows: np.ndarray, late: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yields the ranges of places, each of one entity and with all times known, that contain a late notification."""
    breaks = np.flatnonzero(~follows)
    bounds = [0, *(breaks + 1).tolist(), len(follows) + 1]
    for number in np.unique(np.searchsorted(breaks, late)).tolist():
        yield bounds[number], bounds[number + 1]


def _sort_by_time(times: Sequence[int], deletes: Sequence[int]) -> list[int]:
    """Returns the places of a range in order of time; equal times stay in order of arrival.

    A deletion has the time of the last state. One that arrived before everything else of its time is moved after it.
    """
    order: list[int] = []
    by_time = sorted(range(len(times)), key=times.__getitem__)
    first = 0
    while first < len(by_time):
        last = first
        while last < len(by_time) and times[by_time[last]] == times[by_time[first]]:
            last += 1
        group = by_time[first:last]
        leading = next((number for number, place in enumerate(group) if not deletes[place]), 0)
        order += group[leading:] + group[:leading]
        first = last
    return order
