"""A snapshot compared with state: repeated events, deleted and expired identities, and the guard against a shrunken
source.

Works on narrow Arrow tables (hashes, times and verdicts, never bodies), one row per event, so that a million
identities cost some tens of megabytes. Nothing here reads or writes.

The snapshot's columns: `verdict`, `identity_hash`, `entity_hash`, `content_hash`, `modified_at`, `expires_at`,
`notified`. The state's columns: `identity_hash`, `entity_hash`, `missing_since`, `withheld`, `expires_at`.

Works on the tables of `contexture.records.changes.comparison`. Sources without such entities pay a look at null counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.records.changes.identity_hashes import hash_words


class ChangeKind(IntEnum):
    """What prepare found about one event of the snapshot."""

    SEND = 0
    UNCHANGED = 1
    QUARANTINED = 2
    PRESENT = 3
    DELETE = 4
    SUPERSEDED = 5


_NEVER = -(1 << 62)


def find_expired(state: Any, as_of: datetime | None) -> Any:
    """Which of the state's rows had ended at a moment of the source's clock, by what was last read of them."""
    ends = state.column("expires_at")
    if as_of is None or ends.null_count == state.num_rows:
        return pa.array(np.zeros(state.num_rows, dtype=bool))
    return pc.fill_null(pc.less_equal(ends, pa.scalar(as_of.astimezone(UTC), ends.type)), False)


def find_rescheduled(told: Any, state: Any) -> tuple[Any, Any]:
    """Rows of state whose entity ends at another time than they say while its content stays; and that time of each.

    What is sent brings its time along.
    """
    if not any(each.column("expires_at").null_count < each.num_rows for each in (told, state)):
        return np.empty(0, dtype=np.int64), pa.nulls(0, state.schema.field("expires_at").type)
    kept = told.filter(pc.equal(told.column("verdict"), ChangeKind.UNCHANGED))
    places = pc.index_in(state.column("identity_hash"), value_set=kept.column("identity_hash"))
    rows = np.flatnonzero(np.asarray(places.is_valid()))
    ends = kept.column("expires_at").take(places.take(pa.array(rows)))
    held = state.column("expires_at").take(pa.array(rows))
    differs = np.asarray(pc.not_equal(_microseconds(ends), _microseconds(held)))
    return rows[differs], ends.filter(pa.array(differs))


def _microseconds(times: Any) -> Any:
    return pc.fill_null(times.cast(pa.int64()), _NEVER)


_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class _Told(NamedTuple):
    """One event of an identity that the snapshot shows more than once."""

    row: int
    modified_at: datetime | None
    content_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Row numbers into the snapshot (`superseded`, `conflicting`) and into the state (all others).

    Attributes:
        superseded: events that repeat an identity which a newer row of the snapshot shows better.
        conflicting: accepted events that show other content for the same identity and the same time; none is right,
            unless the last one is to win: then the others are `superseded`, and this is empty.
        first_absent: held identities whose entity is missing for the first time.
        vanished: held identities whose entity was missing before and is missing again, or has said that it would end
            by now: their tombstones are due.
        removed: held identities whose entity was read whole without them: their tombstones are due at once, for what
            is read shows it, and an entity that does not change again is not read again.
        returned: held identities whose mark of absence no longer holds.
        withheld: held identities whose newest content was refused; the target keeps what it has.
        released: held identities whose newest content is accepted again and equals what the target has.
        rescheduled: held identities whose entity ends at another time than state says, with the same content.
        ends: the times that `find_rescheduled` end at now.
        contradictions: how many events contradict another one, whichever wins.
        expired: how many of the vanished have said that they would.
    """

    superseded: Any
    conflicting: Any
    first_absent: Any
    vanished: Any
    removed: Any
    returned: Any
    withheld: Any
    released: Any
    rescheduled: Any
    ends: Any
    contradictions: int = 0
    expired: int = 0


def compare(
    snapshot: Any, state: Any, *, proves_absence: bool, last_wins: bool = False, as_of: datetime | None = None
) -> Comparison:
    """Compares one snapshot with state.

    Args:
        snapshot: the evaluated snapshot, one row per event or sighting.
        state: the state's rows.
        proves_absence: the snapshot is complete, so that what it lacks is gone. An empty snapshot never proves absence.
        last_wins: of events that contradict each other the last is believed, instead of none.
        as_of: the source's clock when it was read; an entity that was to end by then and is gone needs no second
            absence.
    """
    superseded, conflicting, contradictions = _repeats(snapshot, last_wins=last_wins)
    told = _settled(snapshot, superseded, conflicting)
    # Most of what is held is told as it is, so that everything else is asked of few rows: hashing costs most here.
    absent = pc.invert(_in(state, told.column("identity_hash")))
    unmet = pc.and_not(absent, _in(state, told.column("entity_hash"), "entity_hash", among=absent))
    gone = unmet if proves_absence and snapshot.num_rows else _nowhere(state)
    marked, withheld = state.column("missing_since").is_valid(), state.column("withheld")
    removed, refused = _removed(_read_whole(told), state, absent), _refused(told, state)
    accepted = _in(state, _accepted(told), among=withheld)
    ended = pc.and_(gone, find_expired(state, as_of))
    moved, ends = find_rescheduled(_read_whole(told), state)
    return Comparison(
        superseded=superseded,
        conflicting=conflicting,
        first_absent=_rows(pc.and_not(pc.and_not(gone, marked), ended)),
        vanished=_rows(pc.or_(pc.and_(gone, marked), ended)),
        removed=_rows(removed),
        returned=_rows(pc.and_not(marked, pc.or_(unmet, removed))),
        withheld=_rows(pc.and_not(refused, withheld)),
        released=_rows(accepted),
        rescheduled=moved,
        ends=ends,
        contradictions=contradictions,
        expired=int(pc.sum(ended).as_py() or 0),
    )


def _read_whole(told: Any) -> Any:
    """The events of entities that were read; one that was notified may have been told in part."""
    notified = told.column("notified")
    return told.filter(pc.invert(notified)) if pc.any(notified).as_py() else told


def _settled(snapshot: Any, superseded: Any, conflicting: Any) -> Any:
    """The snapshot with one verdict for each identity: what lost is left out, what contradicts is refused."""
    if not len(superseded) and not len(conflicting):
        return snapshot
    verdicts = np.asarray(snapshot.column("verdict")).copy()
    verdicts[conflicting] = ChangeKind.QUARANTINED
    place = snapshot.schema.get_field_index("verdict")
    return snapshot.set_column(place, "verdict", pa.array(verdicts)).take(
        pa.array(np.delete(np.arange(snapshot.num_rows), superseded))
    )


def _removed(told: Any, state: Any, absent: Any) -> Any:
    """Held rows whose entity was read whole, nothing of it refused, without them."""
    read = _in(state, _accepted(told, "entity_hash"), "entity_hash", among=absent)
    refused = _of_verdict(told, ChangeKind.QUARANTINED, "entity_hash")
    return pc.and_not(read, _in(state, refused, "entity_hash", among=read))


def _refused(told: Any, state: Any) -> Any:
    """Held rows that were refused; a refused entity's own identity represents all its attributes."""
    identities = _of_verdict(told, ChangeKind.QUARANTINED, "identity_hash")
    return pc.or_(_in(state, identities), _in(state, identities, "entity_hash"))


def _accepted(told: Any, column: str = "identity_hash") -> Any:
    return told.column(column).filter(pc.less_equal(told.column("verdict"), ChangeKind.UNCHANGED))


def _of_verdict(told: Any, verdict: ChangeKind, column: str) -> Any:
    return told.column(column).filter(pc.equal(told.column("verdict"), verdict))


def _in(state: Any, hashes: Any, column: str = "identity_hash", *, among: Any = None) -> Any:
    """Which of the state's rows have one of these hashes; only rows that are `among` them are looked at."""
    rows = np.arange(state.num_rows) if among is None else _rows(among)
    found = np.zeros(state.num_rows, dtype=bool)
    if len(rows) and len(hashes):
        column_of_rows = state.column(column) if among is None else state.column(column).take(pa.array(rows))
        found[rows] = np.asarray(pc.is_in(column_of_rows, value_set=hashes))
    return pa.array(found)


def _nowhere(state: Any) -> Any:
    return pa.array(np.zeros(state.num_rows, dtype=bool))


def _rows(mask: Any) -> Any:
    return np.flatnonzero(np.asarray(mask))


def _repeats(snapshot: Any, *, last_wins: bool) -> tuple[Any, Any, int]:
    """Rows that lose against another row of the same identity, those refused for a contradiction, and how many rows
    contradict each other."""
    # What was notified is told in turn (see `succession`), so that nothing of it contradicts anything.
    repeatable = pc.and_not(pc.not_equal(snapshot.column("verdict"), ChangeKind.PRESENT), snapshot.column("notified"))
    events = np.flatnonzero(np.asarray(repeatable))
    hashes = snapshot.column("identity_hash").take(pa.array(events))
    if _all_differ(hashes):
        return events[:0], events[:0], 0
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    rows = events[np.asarray(pc.is_in(hashes, value_set=repeated))]
    superseded: list[int] = []
    conflicting: list[int] = []
    contradictions = 0
    for group in _grouped(snapshot, rows):
        lost, contradicting = _judged(group)
        contradictions += len(contradicting)
        # Where one of them was refused for itself, no one knows that a later one is better.
        if last_wins and all(told.content_hash is not None for told in group):
            lost, contradicting = [*lost, *contradicting[:-1]], []
        superseded += lost
        conflicting += contradicting
    return np.array(sorted(superseded), dtype=np.int64), np.array(sorted(conflicting), dtype=np.int64), contradictions


def _all_differ(hashes: Any) -> bool:
    """Whether no two hashes begin alike; sorting numbers costs a tenth of counting hashes."""
    words = np.sort(hash_words(hashes)[0])
    return not (words[1:] == words[:-1]).any()


def _grouped(snapshot: Any, rows: Any) -> list[list[_Told]]:
    """The events of each repeated identity, in order (few rows get here)."""
    columns = snapshot.select(["identity_hash", "modified_at", "content_hash"]).take(pa.array(rows))
    groups: dict[bytes, list[_Told]] = {}
    for row, identity, moment, content in zip(rows.tolist(), *(c.to_pylist() for c in columns.columns), strict=True):
        groups.setdefault(identity, []).append(_Told(row, moment, content))
    return list(groups.values())


def _judged(group: list[_Told]) -> tuple[list[int], list[int]]:
    """The newest modification wins, then the later row; other content at the same time contradicts."""
    newest = max(told.modified_at or _BEFORE_ALL for told in group)
    last = [told for told in group if (told.modified_at or _BEFORE_ALL) == newest]
    lost = [told.row for told in group if told not in last]
    if len({told.content_hash for told in last}) == 1:
        return [*lost, *(told.row for told in last[:-1])], []
    # A refused event has no content; it is in quarantine already.
    return lost, [told.row for told in last if told.content_hash is not None]


@dataclass(frozen=True, slots=True)
class ShrinkGuard:
    """How many identities may vanish in one run: the larger of a share of what is held and a count."""

    share: float
    count: int

    def limit(self, held: int) -> int:
        """The number of identities that may vanish when `held` are held."""
        return max(int(self.share * held), self.count)

    def exceeded(self, vanishing: int, held: int) -> bool:
        """Whether more vanish than may."""
        return vanishing > self.limit(held)

    def check(self, vanishing: int, held: int, *, confirmed: bool) -> None:
        """Lets a deletion of `vanishing` identities pass, or stops the run before anything is sent.

        Raises:
            ConfigurationError: more vanish than the limit, and no one has confirmed it.
        """
        limit = self.limit(held)
        if confirmed or not self.exceeded(vanishing, held):
            return
        raise ConfigurationError(
            f"{vanishing} of {held} identities are gone from the source, and only {limit} may vanish in one run",
            next_step=(
                "see whether the source is whole (service, service path and types of the publication, the broker's "
                "database); if they are really gone, run the publication again with confirm_shrink"
            ),
            alert="too much vanished",
            vanishing=vanishing,
            held=held,
            limit=limit,
        )


_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def superseded_rows(snapshot: Any, objects: Any) -> Any:
    """Returns the rows of the objects whose entity the snapshot shows with a later time of change, as row numbers.

    A source that changes while it is read shows an entity several times: before and after its change. Only the version
    that was changed last is published; the others count nowhere.

    All rows of such an object are among them, whatever their verdict: an attribute that only an older version has is
    not there any more. Objects with the same time of change are left for `compare`, which finds contradictions.
    Notified rows are never among them, because notifications are compared one after the other; rows without an id are
    not either, because nothing says that two of them are one entity.

    Args:
        snapshot: columns `verdict`, `entity_hash`, `entity_modified_at`, `notified` and `identified`; the rows of an
            object follow on each other.
        objects: a number for each row, the same for all rows of one object (numpy).
    """
    verdicts = np.asarray(snapshot.column("verdict"))
    named = np.asarray(snapshot.column("identified")) & ~np.asarray(snapshot.column("notified"))
    read = (verdicts != ChangeKind.PRESENT) & (verdicts != ChangeKind.DELETE) & named
    begins = np.ones(len(objects), dtype=bool)
    begins[1:] = objects[1:] != objects[:-1]
    firsts = np.flatnonzero(read & begins)
    hashes = snapshot.column("entity_hash").take(pa.array(firsts))
    # Sorting half of each hash costs a tenth of counting whole hashes, and most snapshots end here.
    words = np.sort(hash_words(hashes)[0])
    if not (words[1:] == words[:-1]).any():
        return firsts[:0]
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    rows = firsts[np.asarray(pc.is_in(hashes, value_set=repeated))]
    return np.flatnonzero(read & np.isin(objects, objects[_older(snapshot, rows)]))


def _older(snapshot: Any, rows: Any) -> list[int]:
    """The rows (few get here) whose entity is among them with a later time."""
    columns = snapshot.select(["entity_hash", "entity_modified_at"]).take(pa.array(rows))
    hashes, times = (column.to_pylist() for column in columns.columns)
    moments = [time or _BEFORE_ALL for time in times]
    newest: dict[bytes, datetime] = {}
    for entity, moment in zip(hashes, moments, strict=True):
        newest[entity] = max(moment, newest.get(entity, _BEFORE_ALL))
    return [int(row) for row, entity, moment in zip(rows, hashes, moments, strict=True) if moment < newest[entity]]
