"""Events in the order in which they happened, as notifications have them.

Each event is compared with the one before it of the same identity: in state, or earlier in the same run. A value that
comes back is sent again because it is a change; only an event that repeats its predecessor is left out. Nothing is
inferred from what an event lacks.

The functions work on narrow Arrow tables, as those of `comparison` do. They evaluate only entities that were notified,
so that the cost is that of the notifications, however much was read beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes.comparison import ChangeKind, Column, Rows, Table


class SequencePosition(NamedTuple):
    """Where an identity's last content is: a row of state, or a row of the snapshot."""

    held: int | None
    row: int | None


class Deletion(NamedTuple):
    """The end of an identity.

    Attributes:
        row: of the event that deletes it; None where its entity was read whole without it, at the end.
        before: where its last content is.
    """

    row: int | None
    before: SequencePosition


@dataclass(frozen=True, slots=True)
class EventSequence:
    """Row numbers into the snapshot, rising.

    Attributes:
        evaluated: the events that were evaluated here; all others keep their verdicts.
        sent: the events to be sent.
        unchanged: the events that repeat their predecessor, and deletions of unknown identities.
        final: those of `sent` whose content the target has in the end.
        deletions: in sending order.
    """

    evaluated: Rows
    sent: Rows
    unchanged: Rows
    final: Rows
    deletions: tuple[Deletion, ...]


def find_superseded_notifications(snapshot: Table) -> Rows:
    """Returns the notified rows whose identity a later row has again; columns as in `replay_sequence`."""
    is_event = np.asarray(pc.not_equal(snapshot.column("verdict"), ChangeKind.PRESENT))
    notified = np.asarray(snapshot.column("notified"))
    identities = snapshot.column("identity_hash")
    again = np.asarray(pc.is_in(identities, value_set=pc.unique(identities.filter(pa.array(notified)))))
    rows = np.flatnonzero(is_event & again)
    last = dict(zip(identities.take(pa.array(rows)).to_pylist(), rows.tolist(), strict=True))
    is_last = np.zeros(snapshot.num_rows, dtype=bool)
    is_last[list(last.values())] = True
    return np.flatnonzero(notified & ~is_last)


def replay_sequence(
    snapshot: Table,
    state: Table,
    *,
    left_out: Iterable[int] = (),
    deletes: bool = True,
    resend: bool = False,
    resend_notified: bool = False,
) -> EventSequence:
    """Compares each event of the notified entities with its predecessor.

    Args:
        snapshot: one row per event, in order, with `verdict`, `identity_hash`, `entity_hash`, `content_hash` and
            `notified`; the events that were read follow those that were notified.
        state: what the target holds of these entities at least: `identity_hash`, `entity_hash`, `content_hash`.
        left_out: rows that were read and lost against another one of the same identity, or contradict one.
        deletes: deletions are sent; where not, the target keeps what it has.
        resend: events that were read are sent again even when they repeat their predecessor.
        resend_notified: so are events that were notified.
    """
    entities = pc.unique(snapshot.filter(snapshot.column("notified")).column("entity_hash"))
    history = _EntityHistory(deletes=deletes, resend=resend, resend_notified=resend_notified)
    for number, entity, identity, content in _rows_of(state, entities, _STATE_COLUMNS):
        history.add_held(number, entity, identity, content)
    ignored = set(np.asarray(left_out, dtype=np.int64).tolist())
    for event in starmap(_Event, _rows_of(snapshot, entities, (*_STATE_COLUMNS, "verdict", "notified"))):
        history.add_event(event, is_left_out=event.row in ignored)
    return history.end()


_STATE_COLUMNS = ("entity_hash", "identity_hash", "content_hash")


def _rows_of(table: Table, entities: Column, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Returns number and values of each row that belongs to one of the entities; pyarrow's values have no types."""
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


class _KnownContent(NamedTuple):
    content: bytes
    position: SequencePosition


@dataclass(slots=True)
class _Entity:
    """One entity after the events so far."""

    known: dict[bytes, _KnownContent] = field(default_factory=dict)
    read: set[bytes] = field(default_factory=set)
    is_read: bool = False
    is_refused: bool = False
    notified: set[bytes] = field(default_factory=set)


class _EntityHistory:
    """The entities that were notified, event by event."""

    def __init__(self, *, deletes: bool, resend: bool, resend_notified: bool) -> None:
        self._deletes = deletes
        self._resend = resend
        self._resend_notified = resend_notified
        self._entities: defaultdict[bytes, _Entity] = defaultdict(_Entity)
        self._evaluated: list[int] = []
        self._sent: list[int] = []
        self._unchanged: list[int] = []
        self._deletions: list[Deletion] = []

    def add_held(self, number: int, entity: bytes, identity: bytes, content: bytes) -> None:
        """Adds a row of state, before the first event."""
        self._entities[entity].known[identity] = _KnownContent(content, SequencePosition(number, None))

    def add_event(self, event: _Event, *, is_left_out: bool) -> None:
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
        """Returns the result, with the deletions that only reading whole entities shows."""
        for entity in self._entities.values():
            if self._deletes and entity.is_read and not entity.is_refused:
                unread = entity.notified - entity.read
                gone = [identity for identity in entity.known if identity in unread]
                self._deletions += [Deletion(None, entity.known.pop(identity).position) for identity in gone]
        rows = (known.position.row for entity in self._entities.values() for known in entity.known.values())
        return EventSequence(
            evaluated=_to_rows(self._evaluated),
            sent=_to_rows(self._sent),
            unchanged=_to_rows(self._unchanged),
            final=_to_rows(sorted(row for row in rows if row is not None)),
            deletions=tuple(self._deletions),
        )

    def _delete(self, entity: _Entity, event: _Event) -> None:
        self._evaluated.append(event.row)
        if not entity.known or not self._deletes:
            self._unchanged.append(event.row)
            return
        self._deletions += [Deletion(event.row, known.position) for known in entity.known.values()]
        entity.known.clear()

    def _upsert(self, entity: _Entity, event: _Event) -> None:
        if not event.notified:
            entity.is_read = True
            entity.read.add(event.identity)
        else:
            entity.notified.add(event.identity)
        if event.content is None:
            return  # an entity without attributes, where each event is an attribute
        self._evaluated.append(event.row)
        before = entity.known.get(event.identity)
        again = self._resend_notified if event.notified else self._resend
        if before is not None and before.content == event.content and not again:
            self._unchanged.append(event.row)
            return
        self._sent.append(event.row)
        entity.known[event.identity] = _KnownContent(event.content, SequencePosition(None, event.row))


def _to_rows(numbers: list[int]) -> Rows:
    return np.array(numbers, dtype=np.int64)
