"""From the landing of a registry to the transactions of one outbox, and the state that follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from contexture.errors import ConfigurationError, DefectError
from contexture.records.changes.comparison import ChangeKind, ShrinkGuard
from contexture.records.changes.structure_changes import (
    NO_CONTENT,
    HeldStructure,
    LogPosition,
    PlannedRecord,
    PlannedTransaction,
    PublishMode,
    RefusedStructure,
    RouteChanges,
    Routes,
    StructureEvent,
)
from contexture.records.topics.collisions import find_clashes
from contexture.records.topics.structure_routes import Routing
from contexture.sources.sdmx.ordering import reference_order
from contexture.sources.sdmx.urn import is_registration

TOPIC = "topic-name"
_Topics = dict[str, tuple[str, ...]]
_HAS_CONTENT = frozenset({"upsert", "refused", "inexpressible"})


class _RouteShift(NamedTuple):
    """The topics that one structure's content is sent to, and those that it leaves."""

    sent: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class TransactionReplay:
    """The content of the target, transaction by transaction.

    Args:
        held: what it holds in the beginning, by URN.
        routes: where structures go.
        mode: how transactions are sent.

    Attributes:
        target: what it holds after the transactions so far.
        verdicts: of each event so far; `topics` of each whose content is good.
        refused: events that planning refuses.
        repeated: how many events were superseded within their transaction.
        upserts: events that are sent; `deletes`: structures whose tombstones are.
        unrouted: structures that no route selects.
        unserved: structures that would go to further topics, and whose content is not in the landing.
        cycles: structures that refer to each other, in an order that is right for all but one of them.
    """

    def __init__(self, held: Mapping[str, HeldStructure], routes: RouteChanges, mode: PublishMode) -> None:
        self.target = dict(held)
        self.verdicts: dict[int, ChangeKind] = {}
        self.topics: dict[int, tuple[str, ...]] = {}
        self.refused: list[RefusedStructure] = []
        self.repeated = self.upserts = self.deletes = 0
        self.unrouted: dict[str, None] = {}
        self.unserved: dict[str, None] = {}
        self.cycles: list[tuple[str, ...]] = []
        self._routes = routes
        self._mode = mode

    def apply(self, position: LogPosition) -> Iterator[PlannedTransaction]:
        """Returns the transactions of Kafka for one of the registry: none, one or two."""
        reported = (str(event.urn) for event in position.events if event.operation == "delete")
        ended = dict.fromkeys([*reported, *position.absent])
        last = self._last_contents(position.events, ended)
        added = [event.urn for event in position.events if event.urn is not None and event.urn not in ended]
        self._routes.change(added, ended)
        routing = self._routes.routes_of_versions([*added, *ended])
        before = {urn: self.target.get(urn) for urn in (*last, *ended, *routing.topics, *routing.unrouted)}
        shifts = {urn: self._apply_event(urn, event, routing) for urn, event in last.items()}
        sent = {urn: shift.sent for urn, shift in shifts.items()}
        left = {urn: shift.left for urn, shift in shifts.items()} | self._reroute(routing, last)
        absent = frozenset(position.absent)
        left |= {urn: self._delete(urn, is_reported=urn not in absent) for urn in ended}
        values = [
            PlannedRecord(urn, topic, last[urn].event) for urn in self._ordered(sent, last) for topic in sent[urn]
        ]
        ending = self._ordered(left, before)[::-1]
        gone = [PlannedRecord(urn, topic, None, before[urn]) for urn in ending for topic in left[urn]]
        if values and self._mode.sends:
            yield PlannedTransaction(position.id, False, position.at, tuple(values))
        if gone and self._mode.sends and self._mode.deletes:
            yield PlannedTransaction(position.id, True, position.at, tuple(gone))

    def _last_contents(self, events: Sequence[StructureEvent], ended: Mapping[str, None]) -> dict[str, StructureEvent]:
        """Returns the last event about the content of each structure that has not ended."""
        last: dict[str, StructureEvent] = {}
        for event in events:
            self.verdicts[event.event] = _VERDICTS[event.operation]
            if event.operation not in _HAS_CONTENT or event.urn is None:
                continue
            superseded = event if event.urn in ended else last.get(event.urn)
            if superseded is not None and superseded.operation == "upsert":
                self.repeated += 1
                self.verdicts[superseded.event] = ChangeKind.SUPERSEDED
            if event.urn not in ended:
                last[event.urn] = event
        return last

    def _apply_event(self, urn: str, event: StructureEvent, routing: Routing) -> _RouteShift:
        if event.operation == "upsert" and urn not in routing.refused:
            return self._accept(urn, event, routing.topics.get(urn, ()))
        if event.operation == "upsert":
            self.verdicts[event.event] = ChangeKind.QUARANTINED
            self.refused.append(RefusedStructure(event.event, TOPIC, routing.refused[urn].message))
        self._withhold(urn, event)
        return _RouteShift()

    def _accept(self, urn: str, event: StructureEvent, topics: tuple[str, ...]) -> _RouteShift:
        before = self.target.get(urn)
        is_new = before is None or before.content_hash != event.content_hash
        had = before.topics if before else ()
        sent = topics if is_new or self._mode.everything else _without(topics, had)
        self.topics[event.event] = topics
        self.unserved.pop(urn, None)
        self.unrouted.pop(urn, None)
        if not topics:
            self.unrouted[urn] = None
        self.target[urn] = HeldStructure(
            event.content_hash,
            topics,
            at=event.at if is_new or before is None else before.at,
            sequence=self._mode.sequence if sent or before is None else before.sequence,
            references=event.references,
            is_final=event.is_final,
        )
        if sent and self._mode.sends:
            self.upserts += 1
            self.verdicts[event.event] = ChangeKind.SEND
        return _RouteShift(sent, _without(had, topics))

    def _withhold(self, urn: str, event: StructureEvent) -> None:
        """Leaves in the target what it has of a structure."""
        if urn in self.target:
            held = self.target[urn]
            self.target[urn] = replace(held, withheld=held.content_hash != NO_CONTENT)
        elif event.operation == "inexpressible":
            self.target[urn] = HeldStructure(NO_CONTENT, (), sequence=self._mode.sequence)

    def _reroute(self, routing: Routing, changed: Collection[str]) -> _Topics:
        """Returns the topics that unchanged structures leave because a version was added or deleted."""
        left: _Topics = {}
        for urn in (*routing.topics, *routing.unrouted):
            held = self.target.get(urn)
            if held is None or held.content_hash == NO_CONTENT or urn in changed:
                continue
            topics = routing.topics.get(urn, ())
            if _without(topics, held.topics):
                # The landing lacks its content, so that it stays where it is until an event has it.
                self.unserved[urn] = None
            elif _without(held.topics, topics):
                left[urn] = _without(held.topics, topics)
                self.target[urn] = replace(held, topics=_without(held.topics, left[urn]))
        return left

    def _delete(self, urn: str, *, is_reported: bool) -> tuple[str, ...]:
        """Returns the topics that get a tombstone of a deleted structure; `is_reported`: the registry says it."""
        held = self.target.pop(urn, None)
        self.unrouted.pop(urn, None)
        self.unserved.pop(urn, None)
        topics = held.topics if held else ()
        if held is None and is_reported and self._mode.everything:
            # Another instance may have sent it since the state that is known here, and leaves this end to the flush.
            topics = self._routes.routes_of_deleted(urn)
        self.deletes += bool(topics) and self._mode.sends and self._mode.deletes
        return topics

    def _ordered(
        self, topics: Mapping[str, Sequence[str]], contents: Mapping[str, StructureEvent | HeldStructure | None]
    ) -> tuple[str, ...]:
        """Returns structures in an order in which each follows those that its content refers to."""
        known = {urn: contents[urn] for urn, names in topics.items() if names}
        order = reference_order({urn: content.references if content else () for urn, content in known.items()})
        self.cycles += order.cycles
        return order.urns


_VERDICTS: Mapping[str, ChangeKind] = {
    # Until it is known that it is sent.
    "upsert": ChangeKind.UNCHANGED,
    "refused": ChangeKind.QUARANTINED,
    "inexpressible": ChangeKind.PRESENT,
    "present": ChangeKind.PRESENT,
    "delete": ChangeKind.DELETE,
}


def _without(topics: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    left = {*others}
    return tuple(topic for topic in topics if topic not in left)


DUPLICATE = "duplicate"
_USUAL_GUARD = ShrinkGuard(0.2, 10)
_CONTRADICTION = "the registry shows other content for the same URN in one snapshot"
_SEE_REGISTRY = (
    "check that the registry is complete, and what source.select and the rights of the connection select of it; if "
    "they were really deleted, run the publication again with confirm_shrink"
)


@dataclass(frozen=True, slots=True)
class StructureRun:
    """The settings of a run that planning needs.

    Attributes:
        mode: how transactions are sent.
        newest: the newest transaction of the registry that the landing includes; None without a log. Events that have
            no number of their own belong to it.
        refuses_contradictions: a structure that occurs twice, with other content, is refused; else the last one holds.
        proves_absence: the landing is a whole snapshot: what isn't in it is deleted.
        guard: how many structures may be absent in one run.
        stops_shrinking: more stop the run; else they are only counted.
        stops_emptying: a snapshot without structures stops the run, if the target holds any.
        confirmed: a person has confirmed that so many are deleted.
    """

    mode: PublishMode
    newest: int | None = None
    refuses_contradictions: bool = False
    proves_absence: bool = False
    guard: ShrinkGuard = _USUAL_GUARD
    stops_shrinking: bool = True
    stops_emptying: bool = True
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class StructurePlan:
    """The records that are sent, and the changes of state that follow.

    Attributes:
        transactions: of Kafka, in order.
        changes: rows of state that change; None for a structure that the target no longer has.
        verdicts, topics, refused, upserts, deletes, unrouted, cycles: as of `TransactionReplay`.
        repeated: events that were superseded within their transaction, or occur twice in a snapshot.
        unserved: structures that another version's end routes to further topics, and whose content wasn't landed.
        dropped: absent structures, if they are more than the limit and the run continues.
    """

    transactions: tuple[PlannedTransaction, ...]
    changes: Mapping[str, HeldStructure | None]
    verdicts: Mapping[int, ChangeKind]
    topics: Mapping[int, tuple[str, ...]]
    refused: tuple[RefusedStructure, ...]
    repeated: int
    upserts: int
    deletes: int
    unrouted: tuple[str, ...]
    unserved: tuple[str, ...]
    dropped: int
    cycles: tuple[tuple[str, ...], ...]


def plan_structures(
    events: Sequence[StructureEvent], held: Mapping[str, HeldStructure], routes: Routes, run: StructureRun
) -> StructurePlan:
    """Compares, guards and orders what a landing shows.

    Args:
        events: of the landing, by their numbers.
        held: what the target holds, by URN.
        routes: of the publication.
        run: its settings.

    Raises:
        ConfigurationError: more structures are absent than may be, or two topics are one for Kafka.
        DefectError: the registry's transactions are not in order.
    """
    accepted, contradicting = _without_contradictions(events) if run.refuses_contradictions else (events, ())
    positions = _positions(accepted, run)
    shown = {event.urn for event in accepted if event.urn is not None and event.operation != "delete"}
    # A deletion that the registry itself reports ends in its transaction, and is no sign of a broken read.
    mentioned = {event.urn for event in accepted}
    absent = tuple(urn for urn in held if urn not in mentioned) if run.proves_absence else ()
    dropped = 0
    if run.mode.deletes:
        dropped = _check_absence(len(absent), len(held), run, is_empty=not shown)
        dropped = max(dropped, _check_registrations(events, held, run))
    if absent:
        first = positions[0] if positions else LogPosition(run.newest, ())
        positions = [replace(first, absent=absent), *positions[1:]]
    replay = TransactionReplay(held, RouteChanges(routes, held), run.mode)
    transactions = tuple(transaction for position in positions for transaction in replay.apply(position))
    _check_topics(held, replay.target, transactions)
    return StructurePlan(
        transactions=transactions,
        changes=dict(_changes(held, replay.target)),
        verdicts=replay.verdicts,
        topics=replay.topics,
        refused=(*contradicting, *replay.refused),
        repeated=replay.repeated,
        upserts=replay.upserts,
        deletes=replay.deletes,
        unrouted=tuple(sorted(replay.unrouted)),
        unserved=tuple(sorted(replay.unserved)),
        dropped=dropped,
        cycles=tuple(replay.cycles),
    )


def _without_contradictions(
    events: Sequence[StructureEvent],
) -> tuple[Sequence[StructureEvent], tuple[RefusedStructure, ...]]:
    """Returns the events, refusing those that show other content for the same structure in the same transaction.

    A registry's log after a gap recovery may change a structure again and again.
    """
    contents: dict[tuple[str | None, int | None], set[bytes]] = {}
    upserts = [event for event in events if event.operation == "upsert"]
    for event in upserts:
        contents.setdefault((event.urn, event.transaction), set()).add(event.content_hash)
    contradicting = {event.event for event in upserts if len(contents[event.urn, event.transaction]) > 1}
    accepted = [replace(event, operation="refused") if event.event in contradicting else event for event in events]
    return accepted, tuple(RefusedStructure(event, DUPLICATE, _CONTRADICTION) for event in sorted(contradicting))


def _positions(events: Sequence[StructureEvent], run: StructureRun) -> list[LogPosition]:
    """Returns the registry's transactions, in its order."""

    def number(event: StructureEvent) -> int | None:
        return run.newest if event.transaction is None else event.transaction

    positions = [LogPosition(identifier, tuple(group)) for identifier, group in groupby(events, number)]
    for before, after in pairwise(positions):
        if before.id is None or after.id is None or before.id >= after.id:
            raise DefectError(
                f"the landing has the registry's transaction {after.id} behind {before.id}", next_step="report this"
            )
    return positions


def _check_absence(vanishing: int, held: int, run: StructureRun, *, is_empty: bool) -> int:
    """Stops a run whose read seems broken; else returns how many are absent, if they are more than the limit."""
    if run.confirmed:
        return 0
    if run.stops_emptying and vanishing and is_empty:
        raise _shrink_error("the registry shows none", vanishing, held, "and an empty response deletes nothing")
    if not run.guard.exceeded(vanishing, held):
        return 0
    if run.stops_shrinking:
        raise _shrink_error(f"{vanishing} are gone", vanishing, held, f"and {run.guard.limit(held)} may be in one run")
    return vanishing


def vanishing_structures(
    events: Sequence[StructureEvent], held: Mapping[str, HeldStructure], *, proves_absence: bool
) -> tuple[str, ...]:
    """Returns what `source.shrink_limit` applies to, in alphabetical order.

    These are the structures that a whole snapshot lacks, and the data registrations that end: a registry without any is
    ordinary, so that an empty list of them contradicts nothing.
    """
    mentioned = {event.urn for event in events}
    last = {event.urn: event.operation for event in events}
    absent = {urn for urn in held if urn not in mentioned} if proves_absence else set()
    ended = {urn for urn in held if last.get(urn) == "delete" and is_registration(urn)}
    return tuple(sorted(absent | ended))


def _check_registrations(events: Sequence[StructureEvent], held: Mapping[str, HeldStructure], run: StructureRun) -> int:
    """As `_check_absence`, of the data registrations alone: they are few beside the structures."""
    known = {urn: row for urn, row in held.items() if is_registration(urn)}
    ended = vanishing_structures(events, known, proves_absence=run.proves_absence)
    return _check_absence(len(ended), len(known), run, is_empty=False)


def _shrink_error(what: str, vanishing: int, held: int, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{what} of the {held} structures that were published, {reason}",
        next_step=_SEE_REGISTRY,
        vanishing=vanishing,
        held=held,
    )


def _check_topics(
    before: Mapping[str, HeldStructure],
    after: Mapping[str, HeldStructure],
    transactions: Sequence[PlannedTransaction],
) -> None:
    """Refuses topics that brokers take for one, because they create only the first."""
    topics = {topic for held in (before, after) for structure in held.values() for topic in structure.topics}
    topics |= {record.topic for transaction in transactions for record in transaction.records}
    if clashes := find_clashes(topics):
        raise ConfigurationError(
            f"Kafka treats {' and '.join(clashes[0])} as one topic, because they differ only in dots and underscores"
            + (f"; there are {len(clashes) - 1} more such" if len(clashes) > 1 else ""),
            next_step="write topics of this publication's routes that differ in more",
            topics=", ".join(clashes[0]),
        )


def _changes(
    before: Mapping[str, HeldStructure], after: Mapping[str, HeldStructure]
) -> Iterator[tuple[str, HeldStructure | None]]:
    for urn in sorted({*before, *after}):
        if before.get(urn) != after.get(urn):
            yield urn, after.get(urn)
