"""A snapshot compared with state: repeated events, deleted and expired identities, and the guard against a shrunken
source.

The functions work on narrow Arrow tables (hashes, times and verdicts, never bodies), one row per event, so that a
million identities cost some tens of megabytes. Nothing here reads or writes.

The snapshot's columns: `verdict`, `identity_hash`, `entity_hash`, `content_hash`, `modified_at`, `expires_at`,
`notified`. The state's columns: `identity_hash`, `entity_hash`, `missing_since`, `withheld`, `expires_at`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.records.changes.identity_hashes import hash_words

Table = Any
"""A pyarrow table: pyarrow has no type annotations."""
Column = Any
"""A column or an array of pyarrow, which has no type annotations."""
Rows = npt.NDArray[np.int64]
"""Row numbers, rising."""


class ChangeKind(IntEnum):
    """What preparing a run finds about one event of the snapshot."""

    SEND = 0
    UNCHANGED = 1
    QUARANTINED = 2
    PRESENT = 3
    DELETE = 4
    SUPERSEDED = 5


_NEVER = -(1 << 62)
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def find_expired(state: Table, as_of: datetime | None) -> Column:
    """Returns which of the state's rows had ended at a moment of the source's clock, by what was last read of them."""
    ends = state.column("expires_at")
    if as_of is None or ends.null_count == state.num_rows:
        return _nowhere(state)
    return pc.fill_null(pc.less_equal(ends, pa.scalar(as_of.astimezone(UTC), ends.type)), False)


def find_rescheduled(events: Table, state: Table) -> tuple[Rows, Column]:
    """Returns the rows of state whose entity ends at another time with the same content, and that time of each.

    An event that is sent brings its time along. A source without such entities costs only a check of null counts.
    """
    if not any(each.column("expires_at").null_count < each.num_rows for each in (events, state)):
        return np.empty(0, dtype=np.int64), pa.nulls(0, state.schema.field("expires_at").type)
    kept = events.filter(pc.equal(events.column("verdict"), ChangeKind.UNCHANGED))
    positions = pc.index_in(state.column("identity_hash"), value_set=kept.column("identity_hash"))
    rows = _rows(positions.is_valid())
    ends = kept.column("expires_at").take(positions.take(pa.array(rows)))
    held = state.column("expires_at").take(pa.array(rows))
    differs = np.asarray(pc.not_equal(_microseconds(ends), _microseconds(held)))
    return rows[differs], ends.filter(pa.array(differs))


def _microseconds(times: Column) -> Column:
    return pc.fill_null(times.cast(pa.int64()), _NEVER)


class _RepeatedEvent(NamedTuple):
    """One event of an identity that the snapshot shows more than once."""

    row: int
    modified_at: datetime | None
    content_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Row numbers into the snapshot (`superseded`, `conflicting`) and into the state (all others).

    Attributes:
        superseded: events of an identity that the snapshot shows again with a newer row.
        conflicting: accepted events that show other content for the same identity and the same time; none is right,
            unless the last one is to win: then the others are `superseded`, and this is empty.
        first_absent: held identities whose entity is missing for the first time.
        vanished: held identities whose tombstones are due because their entity is missing for the second time, or
            because its announced end has passed.
        removed: held identities whose entity was read whole without them. Their tombstones are due in this run because
            the read proves it, and an entity that does not change again is not read again.
        returned: held identities whose mark of absence no longer holds.
        withheld: held identities whose newest content was refused; the target keeps what it has.
        released: held identities whose newest content is accepted again and equals what the target has.
        rescheduled: held identities whose entity ends at another time than state records, with the same content.
        ends: the new end of each of the rescheduled.
        contradictions: how many events contradict another one, whichever wins.
        expired: how many of the vanished had an announced end that has passed.
    """

    superseded: Rows
    conflicting: Rows
    first_absent: Rows
    vanished: Rows
    removed: Rows
    returned: Rows
    withheld: Rows
    released: Rows
    rescheduled: Rows
    ends: Column
    contradictions: int = 0
    expired: int = 0


def compare(
    snapshot: Table, state: Table, *, proves_absence: bool, last_wins: bool = False, as_of: datetime | None = None
) -> Comparison:
    """Compares one snapshot with state.

    Args:
        snapshot: the evaluated snapshot, one row per event or listed entity.
        state: the state's rows.
        proves_absence: the snapshot is complete, so that what it lacks is deleted. An empty snapshot never proves
            absence.
        last_wins: of events that contradict each other the last is accepted, instead of none.
        as_of: the source's clock when it was read; an absent entity whose end is not later needs no second absence.
    """
    superseded, conflicting, contradictions = _repeats(snapshot, last_wins=last_wins)
    events = _settled(snapshot, superseded, conflicting)
    # Most held rows have an unchanged event, so that every other check sees few rows: hashing costs most here.
    absent = pc.invert(_in(state, events.column("identity_hash")))
    unmet = pc.and_not(absent, _in(state, events.column("entity_hash"), "entity_hash", among=absent))
    gone = unmet if proves_absence and snapshot.num_rows else _nowhere(state)
    marked, withheld = state.column("missing_since").is_valid(), state.column("withheld")
    removed, refused = _removed(_read_whole(events), state, absent), _refused(events, state)
    accepted = _in(state, _accepted(events), among=withheld)
    ended = pc.and_(gone, find_expired(state, as_of))
    moved, ends = find_rescheduled(_read_whole(events), state)
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


def _read_whole(events: Table) -> Table:
    """Returns the events of entities that were read, because a notification may show its entity in part."""
    notified = events.column("notified")
    return events.filter(pc.invert(notified)) if pc.any(notified).as_py() else events


def _settled(snapshot: Table, superseded: Rows, conflicting: Rows) -> Table:
    """Returns the snapshot with one verdict for each identity: without superseded rows, contradictions refused."""
    if not len(superseded) and not len(conflicting):
        return snapshot
    verdicts = np.asarray(snapshot.column("verdict")).copy()
    verdicts[conflicting] = ChangeKind.QUARANTINED
    position = snapshot.schema.get_field_index("verdict")
    return snapshot.set_column(position, "verdict", pa.array(verdicts)).take(
        pa.array(np.delete(np.arange(snapshot.num_rows), superseded))
    )


def _removed(events: Table, state: Table, absent: Column) -> Column:
    """Returns the held rows whose entity was read whole without them, with no part of it refused."""
    read = _in(state, _accepted(events, "entity_hash"), "entity_hash", among=absent)
    refused = _of_verdict(events, ChangeKind.QUARANTINED, "entity_hash")
    return pc.and_not(read, _in(state, refused, "entity_hash", among=read))


def _refused(events: Table, state: Table) -> Column:
    """Returns the held rows that were refused; a refused entity's own identity represents all its attributes."""
    identities = _of_verdict(events, ChangeKind.QUARANTINED, "identity_hash")
    return pc.or_(_in(state, identities), _in(state, identities, "entity_hash"))


def _accepted(events: Table, column: str = "identity_hash") -> Column:
    return events.column(column).filter(pc.less_equal(events.column("verdict"), ChangeKind.UNCHANGED))


def _of_verdict(events: Table, verdict: ChangeKind, column: str) -> Column:
    return events.column(column).filter(pc.equal(events.column("verdict"), verdict))


def _in(state: Table, hashes: Column, column: str = "identity_hash", *, among: Column | None = None) -> Column:
    """Returns which of the state's rows have one of these hashes; only the rows that are `among` are evaluated."""
    rows = np.arange(state.num_rows) if among is None else _rows(among)
    found = np.zeros(state.num_rows, dtype=bool)
    if len(rows) and len(hashes):
        column_of_rows = state.column(column) if among is None else state.column(column).take(pa.array(rows))
        found[rows] = np.asarray(pc.is_in(column_of_rows, value_set=hashes))
    return pa.array(found)


def _nowhere(state: Table) -> Column:
    return pa.array(np.zeros(state.num_rows, dtype=bool))


def _rows(mask: Column) -> Rows:
    return np.flatnonzero(np.asarray(mask))


def _repeats(snapshot: Table, *, last_wins: bool) -> tuple[Rows, Rows, int]:
    """Returns the rows that lose against another row of the same identity, the rows that are refused for a
    contradiction, and how many rows contradict each other."""
    # Notified events are compared in their order (see `sequence`), so that none of them contradicts another.
    repeatable = pc.and_not(pc.not_equal(snapshot.column("verdict"), ChangeKind.PRESENT), snapshot.column("notified"))
    superseded: list[int] = []
    conflicting: list[int] = []
    contradictions = 0
    for group in _grouped(snapshot, _repeated_rows(snapshot, "identity_hash", _rows(repeatable))):
        lost, contradicting = _split_repeats(group)
        contradictions += len(contradicting)
        # Where one of them was refused for itself, nothing shows that a later one is better.
        if last_wins and all(event.content_hash is not None for event in group):
            lost, contradicting = [*lost, *contradicting[:-1]], []
        superseded += lost
        conflicting += contradicting
    return np.array(sorted(superseded), dtype=np.int64), np.array(sorted(conflicting), dtype=np.int64), contradictions


def _repeated_rows(snapshot: Table, column: str, rows: Rows) -> Rows:
    """Returns the rows among these whose hash another one of them has too."""
    hashes = snapshot.column(column).take(pa.array(rows))
    # Sorting half of each hash costs a tenth of counting whole hashes, and most snapshots end here.
    words = np.sort(hash_words(hashes)[0])
    if not (words[1:] == words[:-1]).any():
        return rows[:0]
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    is_repeated: npt.NDArray[np.bool_] = np.asarray(pc.is_in(hashes, value_set=repeated))
    return rows[is_repeated]


def _grouped(snapshot: Table, rows: Rows) -> list[list[_RepeatedEvent]]:
    """Returns the events of each repeated identity, in order (few rows get here)."""
    columns = snapshot.select(["identity_hash", "modified_at", "content_hash"]).take(pa.array(rows))
    groups: dict[bytes, list[_RepeatedEvent]] = {}
    for row, identity, moment, content in zip(rows.tolist(), *(c.to_pylist() for c in columns.columns), strict=True):
        groups.setdefault(identity, []).append(_RepeatedEvent(row, moment, content))
    return list(groups.values())


def _split_repeats(group: list[_RepeatedEvent]) -> tuple[list[int], list[int]]:
    """Returns the rows that lose and the rows that contradict.

    The newest modification wins, then the later row; other content at the same time contradicts.
    """
    newest = max(event.modified_at or _BEFORE_ALL for event in group)
    last = [event for event in group if (event.modified_at or _BEFORE_ALL) == newest]
    lost = [event.row for event in group if event not in last]
    if len({event.content_hash for event in last}) == 1:
        return [*lost, *(event.row for event in last[:-1])], []
    # A refused event has no content; it is in quarantine already.
    return lost, [event.row for event in last if event.content_hash is not None]


@dataclass(frozen=True, slots=True)
class ShrinkGuard:
    """The limit of identities that may disappear in one run: the larger of a share of what is held and a count."""

    share: float
    count: int

    def limit(self, held: int) -> int:
        """Returns how many identities may disappear when `held` are held."""
        return max(int(self.share * held), self.count)

    def exceeded(self, vanishing: int, held: int) -> bool:
        return vanishing > self.limit(held)

    def check(self, vanishing: int, held: int, *, confirmed: bool) -> None:
        """Stops a run before it sends too many deletions.

        Raises:
            ConfigurationError: more identities disappear than the limit, and no person has confirmed it.
        """
        limit = self.limit(held)
        if confirmed or not self.exceeded(vanishing, held):
            return
        raise ConfigurationError(
            f"{vanishing} of {held} identities are missing from the source, and only {limit} may be deleted in one run",
            next_step=(
                "check that the source is complete (service, service path and types of the publication, the broker's "
                "database); if they were really deleted, run the publication again with confirm_shrink"
            ),
            alert="too much vanished",
            vanishing=vanishing,
            held=held,
            limit=limit,
        )


def superseded_rows(snapshot: Table, objects: Rows) -> Rows:
    """Returns the rows of the objects whose entity the snapshot shows with a later time of change, as row numbers.

    A source that changes while it is read shows an entity several times: before and after its change. Only the version
    that was changed last is published and counted.

    All rows of such an object are among them, whatever their verdict, because an attribute that only an older version
    has does not exist any more. `compare` handles objects with the same time of change, and finds contradictions.
    Notified rows are never among them, because notifications are compared in order; neither are rows without an id,
    because nothing shows that two of them are one entity.

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
    rows = _repeated_rows(snapshot, "entity_hash", _rows(read & begins))
    if not len(rows):
        return rows
    return _rows(read & np.isin(objects, objects[_older(snapshot, rows)]))


def _older(snapshot: Table, rows: Rows) -> list[int]:
    """Returns the rows (few get here) whose entity is among them with a later time."""
    columns = snapshot.select(["entity_hash", "entity_modified_at"]).take(pa.array(rows))
    hashes, times = (column.to_pylist() for column in columns.columns)
    moments = [time or _BEFORE_ALL for time in times]
    newest: dict[bytes, datetime] = {}
    for entity, moment in zip(hashes, moments, strict=True):
        newest[entity] = max(moment, newest.get(entity, _BEFORE_ALL))
    return [int(row) for row, entity, moment in zip(rows, hashes, moments, strict=True) if moment < newest[entity]]
