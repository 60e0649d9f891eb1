"""Events in the order in which they happened, as notifications have them.

Each event is compared with what was told of its identity just before: by state, or by an earlier event of the same run.
A value that comes back is told again, for it is a change; only what repeats its predecessor is left out. Nothing is
inferred from what an event lacks.

Works on narrow Arrow tables, as `comparison` does. Only entities that were notified are looked at, so that the cost is
that of the notifications, however much was read beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes.comparison import ChangeKind


class SequencePosition(NamedTuple):
    """What an identity's last content was told by: a row of state, or a row of the snapshot."""

    held: int | None
    row: int | None


class Deletion(NamedTuple):
    """An identity that is gone: what told so (None: reading its entity whole, at the end), and what told it before."""

    row: int | None
    before: SequencePosition


@dataclass(frozen=True, slots=True)
class EventSequence:
    """Row numbers into the snapshot, rising.

    Attributes:
        looked_at: the events that were judged here; the verdicts of all others stand.
        sent: those to be sent.
        unchanged: those that say what was told before, deletions of what no one told included.
        final: those of `sent` whose content the target has in the end.
        deletions: in the order in which they are told.
    """

    looked_at: Any
    sent: Any
    unchanged: Any
    final: Any
    deletions: tuple[Deletion, ...]


def overtaken(snapshot: Any) -> Any:
    """The notified rows behind which the snapshot has the same identity again; columns as in `replay_sequence`."""
    telling = np.asarray(pc.not_equal(snapshot.column("verdict"), ChangeKind.PRESENT))
    notified = np.asarray(snapshot.column("notified"))
    identities = snapshot.column("identity_hash")
    again = np.asarray(pc.is_in(identities, value_set=pc.unique(identities.filter(pa.array(notified)))))
    rows = np.flatnonzero(telling & again)
    last = dict(zip(identities.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True))
    is_last = np.zeros(snapshot.num_rows, dtype=bool)
    is_last[list(last.values())] = True
    return np.flatnonzero(notified & ~is_last)


def replay_sequence(
    snapshot: Any,
    state: Any,
    *,
    left_out: Any = (),
    deletes: bool = True,
    resend: bool = False,
    resend_notified: bool = False,
) -> EventSequence:
    """Judges the events of notified entities, each by its predecessor.

    Args:
        snapshot: one row per event, in order, with `verdict`, `identity_hash`, `entity_hash`, `content_hash` and
            `notified`; what was read stands behind what was notified before.
        state: what the target holds of these entities at least: `identity_hash`, `entity_hash`, `content_hash`.
        left_out: rows of what was read that lost against another one of the same identity, or contradict one.
        deletes: deletions are told; where not, the target keeps what it has.
        resend: what was read is sent again even when it repeats its predecessor.
        resend_notified: so is what was notified.
    """
    touched = pc.unique(snapshot.filter(snapshot.column("notified")).column("entity_hash"))
    story = _Story(deletes=deletes, resend=resend, resend_notified=resend_notified)
    story.begin(_columns(state, touched, ("entity_hash", "identity_hash", "content_hash")))
    ignored = set(np.asarray(left_out, dtype=np.int64).tolist())
    for event in _columns(snapshot, touched, ("entity_hash", "identity_hash", "content_hash", "verdict", "notified")):
        story.tell(_Event(*event), is_left_out=event[0] in ignored)
    return story.end()


def _columns(table: Any, entities: Any, names: Iterable[str]) -> Iterable[tuple[Any, ...]]:
    """Number and values of each row that belongs to one of the entities."""
    rows = np.flatnonzero(np.asarray(pc.is_in(table.column("entity_hash"), value_set=entities)))
    chosen = table.select(list(names)).take(pa.array(rows))
    return zip(rows.tolist(), *(column.to_pylist() for column in chosen.columns), strict=True)


class _Event(NamedTuple):
    row: int
    entity: bytes
    identity: bytes
    content: bytes | None
    verdict: int
    notified: bool


class _Known(NamedTuple):
    content: bytes
    place: SequencePosition


@dataclass(slots=True)
class _Entity:
    """One entity as it was told so far."""

    known: dict[bytes, _Known] = field(default_factory=dict)
    read: set[bytes] = field(default_factory=set)
    is_read: bool = False
    is_refused: bool = False
    notified: set[bytes] = field(default_factory=set)


class _Story:
    """What happened to the entities that were notified, event by event."""

    def __init__(self, *, deletes: bool, resend: bool, resend_notified: bool) -> None:
        self._deletes = deletes
        self._resend = resend
        self._resend_notified = resend_notified
        self._entities: defaultdict[bytes, _Entity] = defaultdict(_Entity)
        self._looked_at: list[int] = []
        self._sent: list[int] = []
        self._unchanged: list[int] = []
        self._deletions: list[Deletion] = []

    def begin(self, held: Iterable[tuple[Any, ...]]) -> None:
        """What the target holds before the first event."""
        for number, entity, identity, content in held:
            self._entities[entity].known[identity] = _Known(content, SequencePosition(number, None))

    def tell(self, event: _Event, *, is_left_out: bool) -> None:
        """One event."""
        entity = self._entities[event.entity]
        if is_left_out:
            entity.read.add(event.identity)
        elif event.verdict == ChangeKind.DELETE:
            self._delete(entity, event)
        elif event.verdict <= ChangeKind.UNCHANGED:
            self._upsert(entity, event)
        elif event.verdict == ChangeKind.QUARANTINED and not event.notified:
            entity.is_refused = True

    def end(self) -> EventSequence:
        """What came of it."""
        for entity in self._entities.values():
            if self._deletes and entity.is_read and not entity.is_refused:
                unread = entity.notified - entity.read
                gone = [identity for identity in entity.known if identity in unread]
                self._deletions += [Deletion(None, entity.known.pop(identity).place) for identity in gone]
        places = (known.place.row for entity in self._entities.values() for known in entity.known.values())
        return EventSequence(
            looked_at=_rows(self._looked_at),
            sent=_rows(self._sent),
            unchanged=_rows(self._unchanged),
            final=_rows(sorted(row for row in places if row is not None)),
            deletions=tuple(self._deletions),
        )

    def _delete(self, entity: _Entity, event: _Event) -> None:
        self._looked_at.append(event.row)
        if not entity.known or not self._deletes:
            self._unchanged.append(event.row)
            return
        self._deletions += [Deletion(event.row, known.place) for known in entity.known.values()]
        entity.known.clear()

    def _upsert(self, entity: _Entity, event: _Event) -> None:
        if not event.notified:
            entity.is_read = True
            entity.read.add(event.identity)
        else:
            entity.notified.add(event.identity)
        if event.content is None:
            return  # an entity without attributes, where attributes are what is told
        self._looked_at.append(event.row)
        before = entity.known.get(event.identity)
        again = self._resend_notified if event.notified else self._resend
        if before is not None and before.content == event.content and not again:
            self._unchanged.append(event.row)
            return
        self._sent.append(event.row)
        entity.known[event.identity] = _Known(event.content, SequencePosition(None, event.row))


def _rows(numbers: list[int]) -> Any:
    return np.array(numbers, dtype=np.int64)
