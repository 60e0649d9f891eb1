"""From the landing of a registry to the transactions of one outbox, and the state that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

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
from contexture.records.topics.collisions import metric_name
from contexture.records.topics.structure_routes import Routing
from contexture.sources.sdmx.ordering import reference_order

TOPIC = "topic-name"
_Topics = dict[str, tuple[str, ...]]
_TELLS_CONTENT = frozenset({"upsert", "refused", "inexpressible"})


class Replay:
    """What the target holds while transactions are told.

    Args:
        held: what it holds in the beginning, by URN.
        destinations: where structures go.
        telling: how they are told.

    Attributes:
        target: what it holds by now.
        verdicts: of each event that was told; `topics` of each whose content is good.
        refused: events that planning refuses.
        repeated: how many events were overtaken within their transaction.
        upserts: events that are sent; `deletes`: structures whose tombstones are.
        unrouted: structures that no route selects.
        unserved: structures that would go to further topics, and whose content no one has told.
        cycles: structures that refer to each other, in an order that is right for all but one of them.
    """

    def __init__(self, held: Mapping[str, HeldStructure], destinations: RouteChanges, telling: PublishMode) -> None:
        self.target = dict(held)
        self.verdicts: dict[int, ChangeKind] = {}
        self.topics: dict[int, tuple[str, ...]] = {}
        self.refused: list[RefusedStructure] = []
        self.repeated = self.upserts = self.deletes = 0
        self.unrouted: dict[str, None] = {}
        self.unserved: dict[str, None] = {}
        self.cycles: list[tuple[str, ...]] = []
        self._destinations = destinations
        self._telling = telling

    def tell(self, step: LogPosition) -> Iterator[PlannedTransaction]:
        """The transactions of Kafka that tell one of the registry: none, one or two."""
        ended = dict.fromkeys([*(str(event.urn) for event in step.events if event.operation == "delete"), *step.absent])
        last = self._last_words(step.events, ended)
        come = [event.urn for event in step.events if event.urn is not None and event.urn not in ended]
        self._destinations.change(come, ended)
        routing = self._destinations.around([*come, *ended])
        before = {urn: self.target.get(urn) for urn in (*last, *ended, *routing.topics, *routing.unrouted)}
        sent, left = self._changed(last, routing)
        absent = frozenset(step.absent)
        left |= {urn: self._ended(urn, is_told=urn not in absent) for urn in ended}
        values = [
            PlannedRecord(urn, topic, last[urn].event) for urn in self._ordered(sent, last) for topic in sent[urn]
        ]
        ending = self._ordered(left, before)[::-1]
        gone = [PlannedRecord(urn, topic, None, before[urn]) for urn in ending for topic in left[urn]]
        if values and self._telling.sends:
            yield PlannedTransaction(step.id, False, step.at, tuple(values))
        if gone and self._telling.sends and self._telling.deletes:
            yield PlannedTransaction(step.id, True, step.at, tuple(gone))

    def _changed(self, last: Mapping[str, StructureEvent], routing: Routing) -> tuple[_Topics, _Topics]:
        """The topics that structures are sent to, and those that they leave, by what was told of them last."""
        sent: _Topics = {}
        left: _Topics = {}
        for urn, event in last.items():
            sent[urn], left[urn] = self._told(urn, event, routing)
        return sent, left | self._moved(routing, last)

    def _last_words(self, events: Sequence[StructureEvent], ended: Mapping[str, None]) -> dict[str, StructureEvent]:
        """The last event about each structure's content; one that has ended by then has none."""
        last: dict[str, StructureEvent] = {}
        for event in events:
            self.verdicts[event.event] = _VERDICTS[event.operation]
            if event.operation not in _TELLS_CONTENT or event.urn is None:
                continue
            overtaken = event if event.urn in ended else last.get(event.urn)
            if overtaken is not None and overtaken.operation == "upsert":
                self.repeated += 1
                self.verdicts[overtaken.event] = ChangeKind.SUPERSEDED
            if event.urn not in ended:
                last[event.urn] = event
        return last

    def _told(self, urn: str, event: StructureEvent, routing: Routing) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The topics that one structure's content is sent to, and those that it leaves."""
        if urn in routing.refused:
            if event.operation == "upsert":
                self.verdicts[event.event] = ChangeKind.QUARANTINED
                self.refused.append(RefusedStructure(event.event, TOPIC, routing.refused[urn].message))
            return self._withheld(urn, event)
        if event.operation != "upsert":
            return self._withheld(urn, event)
        return self._accepted(urn, event, routing.topics.get(urn, ()))

    def _accepted(
        self, urn: str, event: StructureEvent, topics: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        before = self.target.get(urn)
        is_new = before is None or before.content_hash != event.content_hash
        had = before.topics if before else ()
        sent = topics if is_new or self._telling.everything else _without(topics, had)
        self.topics[event.event] = topics
        self.unserved.pop(urn, None)
        self.unrouted.pop(urn, None)
        if not topics:
            self.unrouted[urn] = None
        self.target[urn] = HeldStructure(
            event.content_hash,
            topics,
            at=event.at if is_new or before is None else before.at,
            sequence=self._telling.sequence if sent or before is None else before.sequence,
            references=event.references,
            is_final=event.is_final,
        )
        if sent and self._telling.sends:
            self.upserts += 1
            self.verdicts[event.event] = ChangeKind.SEND
        return sent, _without(had, topics)

    def _withheld(self, urn: str, event: StructureEvent) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the target has of it stays."""
        if urn in self.target:
            held = self.target[urn]
            self.target[urn] = replace(held, withheld=held.content_hash != NO_CONTENT)
        elif event.operation == "inexpressible":
            self.target[urn] = HeldStructure(NO_CONTENT, (), sequence=self._telling.sequence)
        return (), ()

    def _moved(self, routing: Routing, told: Mapping[str, StructureEvent]) -> dict[str, tuple[str, ...]]:
        """The topics that structures leave because another version came or went."""
        left: dict[str, tuple[str, ...]] = {}
        for urn in (*routing.topics, *routing.unrouted):
            held = self.target.get(urn)
            if held is None or held.content_hash == NO_CONTENT or urn in told:
                continue
            topics = routing.topics.get(urn, ())
            if _without(topics, held.topics):
                # Its content isn't at hand: it stays where it was until someone tells it.
                self.unserved[urn] = None
            elif _without(held.topics, topics):
                left[urn] = _without(held.topics, topics)
                self.target[urn] = replace(held, topics=_without(held.topics, left[urn]))
        return left

    def _ended(self, urn: str, *, is_told: bool) -> tuple[str, ...]:
        """The topics that get a tombstone of a structure that is gone."""
        held = self.target.pop(urn, None)
        self.unrouted.pop(urn, None)
        self.unserved.pop(urn, None)
        topics = held.topics if held else ()
        if held is None and is_told and self._telling.everything:
            # Another instance may have sent it since the state that is known here, and leaves this end to the flush.
            topics = self._destinations.of_gone(urn)
        self.deletes += bool(topics) and self._telling.sends and self._telling.deletes
        return topics

    def _ordered(
        self, topics: Mapping[str, Sequence[str]], contents: Mapping[str, StructureEvent | HeldStructure | None]
    ) -> tuple[str, ...]:
        """What is referred to before what refers to it, in these contents."""
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
    "see whether the registry is whole, and what source.select and the rights of the connection leave of it; if they "
    "are really gone, run the publication again with confirm_shrink"
)


@dataclass(frozen=True, slots=True)
class StructureRun:
    """What planning needs to know of a run.

    Attributes:
        telling: how transactions are told.
        newest: the newest transaction of the registry that the landing includes; None without a log. Events that have
            no number of their own belong to it.
        refuses_contradictions: a structure that stands twice, with other content, is refused; else the last one holds.
        proves_absence: the landing is a whole snapshot: what isn't in it is gone.
        guard: how many structures may be gone at once.
        stops_shrinking: more stop the run; else they are only counted.
        stops_emptying: a snapshot without structures stops the run, if the target holds any.
        confirmed: a person has confirmed that so many are gone.
    """

    telling: PublishMode
    newest: int | None = None
    refuses_contradictions: bool = False
    proves_absence: bool = False
    guard: ShrinkGuard = _USUAL_GUARD
    stops_shrinking: bool = True
    stops_emptying: bool = True
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class StructurePlan:
    """What is sent, and what the target has then.

    Attributes:
        transactions: of Kafka, in order.
        changes: rows of state that change; None for a structure that the target no longer has.
        verdicts: of each event.
        topics: where each event goes whose content is good; none where no route selects it.
        refused: events that planning refuses.
        repeated: events that were overtaken within their transaction, or stand twice in a snapshot.
        upserts: events that are sent.
        deletes: structures whose tombstones are sent.
        unrouted: structures that no route selects.
        unserved: structures that another version's end brings to further topics, and whose content wasn't landed.
        dropped: structures that are gone, if they are more than may be and the run goes on.
        cycles: structures that refer to each other.
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
        routes: say where structures go.
        run: how it is told.

    Raises:
        ConfigurationError: more structures are gone than may, or two topics are one for Kafka.
        DefectError: the registry's transactions are not in order.
    """
    judged, contradicting = _without_contradictions(events) if run.refuses_contradictions else (events, ())
    steps = _steps(judged, run)
    shown = {event.urn for event in judged if event.urn is not None and event.operation != "delete"}
    # What the registry says itself is gone ends where it says so, and is no sign of a broken read.
    told = {event.urn for event in judged}
    absent = tuple(urn for urn in held if urn not in told) if run.proves_absence else ()
    dropped = _guarded(len(absent), len(held), run, is_empty=not shown) if run.telling.deletes else 0
    if absent:
        first = steps[0] if steps else LogPosition(run.newest, ())
        steps = [replace(first, absent=absent), *steps[1:]]
    replay = Replay(held, RouteChanges(routes, held), run.telling)
    transactions = tuple(transaction for step in steps for transaction in replay.tell(step))
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
    """The events, those refused that show other content for the same structure at the same time.

    What a registry's log shows behind a catch-up may change a structure again and again.
    """
    contents: dict[tuple[str | None, int | None], set[bytes]] = {}
    upserts = [event for event in events if event.operation == "upsert"]
    for event in upserts:
        contents.setdefault((event.urn, event.transaction), set()).add(event.content_hash)
    contradicting = {event.event for event in upserts if len(contents[event.urn, event.transaction]) > 1}
    judged = [replace(event, operation="refused") if event.event in contradicting else event for event in events]
    return judged, tuple(RefusedStructure(event, DUPLICATE, _CONTRADICTION) for event in sorted(contradicting))


def _steps(events: Sequence[StructureEvent], run: StructureRun) -> list[LogPosition]:
    """The registry's transactions, in its order."""

    def number(event: StructureEvent) -> int | None:
        return run.newest if event.transaction is None else event.transaction

    steps = [LogPosition(identifier, tuple(group)) for identifier, group in groupby(events, number)]
    for before, after in pairwise(steps):
        if before.id is None or after.id is None or before.id >= after.id:
            raise DefectError(
                f"the landing has the registry's transaction {after.id} behind {before.id}", next_step="report this"
            )
    return steps


def _guarded(vanishing: int, held: int, run: StructureRun, *, is_empty: bool) -> int:
    """Holds up what looks like a broken read; else says how many are gone, if they are more than may be."""
    if run.confirmed:
        return 0
    if run.stops_emptying and vanishing and is_empty:
        raise _shrunk("the registry shows none", vanishing, held, "and an empty answer deletes nothing")
    if not run.guard.exceeded(vanishing, held):
        return 0
    if run.stops_shrinking:
        raise _shrunk(f"{vanishing} are gone", vanishing, held, f"and {run.guard.limit(held)} may be in one run")
    return vanishing


def _shrunk(what: str, vanishing: int, held: int, reason: str) -> ConfigurationError:
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
    """Refuses topics that brokers take for one: they make only the first."""
    topics = {topic for held in (before, after) for structure in held.values() for topic in structure.topics}
    topics |= {record.topic for transaction in transactions for record in transaction.records}
    alike: dict[str, list[str]] = {}
    for topic in sorted(topics):
        alike.setdefault(metric_name(topic), []).append(topic)
    clashes = [names for names in alike.values() if len(names) > 1]
    if clashes:
        raise ConfigurationError(
            f"Kafka takes {' and '.join(clashes[0])} for one topic, because they differ only in dots and underscores"
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
