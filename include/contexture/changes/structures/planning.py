"""From what a landing tells of a registry to the transactions of one outbox, and the state that follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from contexture.changes.shrink import ShrinkGuard
from contexture.changes.structures.events import (
    HeldStructure,
    PlannedTransaction,
    Refused,
    Step,
    StructureEvent,
    Telling,
)
from contexture.changes.structures.replay import Replay
from contexture.changes.structures.routes import Destinations, Routes
from contexture.changes.verdicts import Verdict
from contexture.errors import ConfigurationError, DefectError
from contexture.topics.collisions import as_brokers_compare

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
        tells_absence: the landing is a whole snapshot: what isn't in it is gone.
        guard: how many structures may be gone at once.
        stops_shrinking: more stop the run; else they are only counted.
        stops_emptying: a snapshot without structures stops the run, if the target holds any.
        confirmed: a person has confirmed that so many are gone.
    """

    telling: Telling
    newest: int | None = None
    refuses_contradictions: bool = False
    tells_absence: bool = False
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
    verdicts: Mapping[int, Verdict]
    topics: Mapping[int, tuple[str, ...]]
    refused: tuple[Refused, ...]
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
    """Compares, guards and orders what a landing tells.

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
    absent = tuple(urn for urn in held if urn not in told) if run.tells_absence else ()
    dropped = _guarded(len(absent), len(held), run, is_empty=not shown) if run.telling.deletes else 0
    if absent:
        first = steps[0] if steps else Step(run.newest, ())
        steps = [replace(first, absent=absent), *steps[1:]]
    replay = Replay(held, Destinations(routes, held), run.telling)
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
) -> tuple[Sequence[StructureEvent], tuple[Refused, ...]]:
    """The events, those refused that show other content for the same structure at the same time.

    What a registry's log tells behind a catch-up may change a structure again and again.
    """
    contents: dict[tuple[str | None, int | None], set[bytes]] = {}
    upserts = [event for event in events if event.operation == "upsert"]
    for event in upserts:
        contents.setdefault((event.urn, event.transaction), set()).add(event.content_hash)
    contradicting = {event.event for event in upserts if len(contents[event.urn, event.transaction]) > 1}
    judged = [replace(event, operation="refused") if event.event in contradicting else event for event in events]
    return judged, tuple(Refused(event, DUPLICATE, _CONTRADICTION) for event in sorted(contradicting))


def _steps(events: Sequence[StructureEvent], run: StructureRun) -> list[Step]:
    """The registry's transactions, in its order."""

    def number(event: StructureEvent) -> int | None:
        return run.newest if event.transaction is None else event.transaction

    steps = [Step(identifier, tuple(group)) for identifier, group in groupby(events, number)]
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
        alike.setdefault(as_brokers_compare(topic), []).append(topic)
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
