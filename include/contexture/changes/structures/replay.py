"""Telling a registry's transactions one after the other, each compared with what the target has by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from contexture.changes.structures.events import (
    NO_CONTENT,
    HeldStructure,
    PlannedRecord,
    PlannedTransaction,
    Refused,
    Step,
    StructureEvent,
    Telling,
)
from contexture.changes.structures.routes import Destinations
from contexture.changes.verdicts import Verdict
from contexture.sdmx.ordering import reference_order
from contexture.sdmx.routing import Routing

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
        unserved: structures that would go to further topics, and whose content nobody has told.
        cycles: structures that refer to each other, in an order that is right for all but one of them.
    """

    def __init__(self, held: Mapping[str, HeldStructure], destinations: Destinations, telling: Telling) -> None:
        self.target = dict(held)
        self.verdicts: dict[int, Verdict] = {}
        self.topics: dict[int, tuple[str, ...]] = {}
        self.refused: list[Refused] = []
        self.repeated = self.upserts = self.deletes = 0
        self.unrouted: dict[str, None] = {}
        self.unserved: dict[str, None] = {}
        self.cycles: list[tuple[str, ...]] = []
        self._destinations = destinations
        self._telling = telling

    def tell(self, step: Step) -> Iterator[PlannedTransaction]:
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
                self.verdicts[overtaken.event] = Verdict.SUPERSEDED
            if event.urn not in ended:
                last[event.urn] = event
        return last

    def _told(self, urn: str, event: StructureEvent, routing: Routing) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The topics that one structure's content is sent to, and those that it leaves."""
        if urn in routing.refused:
            if event.operation == "upsert":
                self.verdicts[event.event] = Verdict.QUARANTINED
                self.refused.append(Refused(event.event, TOPIC, routing.refused[urn].message))
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
            self.verdicts[event.event] = Verdict.SEND
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
                # Its content isn't at hand: it stays where it was until somebody tells it.
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


_VERDICTS: Mapping[str, Verdict] = {
    # Until it is known that it is sent.
    "upsert": Verdict.UNCHANGED,
    "refused": Verdict.QUARANTINED,
    "inexpressible": Verdict.PRESENT,
    "present": Verdict.PRESENT,
    "delete": Verdict.DELETE,
}


def _without(topics: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    left = {*others}
    return tuple(topic for topic in topics if topic not in left)
