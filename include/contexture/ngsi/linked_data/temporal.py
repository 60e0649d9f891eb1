"""Reading the history of an NGSI-LD broker: what was so after each change of an interval, in the order of the changes.

The interval is read as one stretch. An answer that holds only a part of it (206) makes two stretches of it, cut at the
time the part reaches; so what is told was answered completely, and memory holds one stretch.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from contexture.errors import ConfigurationError, RetriableError
from contexture.ngsi.answers import NotOfferedError, PageTimeoutError, PageTooLargeError
from contexture.ngsi.broker import WALK_DEADLINE_SECONDS, Page
from contexture.ngsi.linked_data.client import LinkedDataBroker
from contexture.ngsi.linked_data.evolution import Evolution, parse_evolution, told
from contexture.ngsi.linked_data.flavour import held_itself
from contexture.ngsi.linked_data.questions import TypeQuestion, packed
from contexture.ngsi.linked_data.sighting import sight_linked_data
from contexture.ngsi.linked_data.temporal_paging import TemporalPaging
from contexture.ngsi.linked_data.temporal_questions import (
    TEMPORAL_ENTITIES,
    Stretch,
    history_parameters,
    last_known_parameters,
    range_end,
)
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.transport import Answer, Question

INSTANCES_AT_ONCE = 50_000
"""A stretch with more is cut: what memory holds."""


class _TooMuchError(Exception):
    """A stretch is too long; `reached` is the time up to which a part was answered."""

    def __init__(self, reached: datetime | None) -> None:
        super().__init__(reached)
        self.reached = reached


class HistoryBroker(LinkedDataBroker):
    """One tenant of an NGSI-LD broker that keeps a history; arguments as `LinkedDataBroker`."""

    def history(
        self,
        query: EntityQuery,
        interval: Stretch,
        *,
        whole: bool = True,
        deadline_seconds: float = WALK_DEADLINE_SECONDS,
    ) -> Iterator[Page]:
        """The selected entities after each of their changes, in the order of these (then by id).

        Deletions are not told: brokers keep them apart, or not at all.

        Args:
            query: which entities.
            interval: the changes of which time; by `modifiedAt`, the broker's clock.
            whole: tell all that was known of an entity then; else only what changed.
            deadline_seconds: after which no more is asked.

        Raises:
            NotOfferedError: the broker keeps no history, or shows none.
            RetriableError: it is away or ill, took too long, or history was taken away meanwhile.
            ConfigurationError: it refuses us or the query, or more happened at one moment than it shows.
            EntityError: what it shows is no history.
        """
        deadline = self._patience.clock() + deadline_seconds
        names = query.types or self._types_twice(query.type_pattern, deadline)
        questions = tuple(TypeQuestion(query, types) for types in packed(names))
        waiting = [interval]
        while waiting:
            stretch = waiting.pop()
            try:
                page = self._told(questions, stretch, whole, deadline)
            except (_TooMuchError, PageTimeoutError, PageTooLargeError) as error:
                waiting.extend(reversed(self._halves(stretch, error)))
            else:
                if page is not None:
                    yield page

    def _types_twice(self, pattern: str | None, deadline: float) -> tuple[str, ...]:
        """The types there are, when two answers agree: one without a type leaves out all its changes."""
        names = tuple(self._types_like(pattern, deadline))
        if set(names) != set(self._types_like(pattern, deadline)):
            raise RetriableError(
                f"the context broker at {self.address} answered with two different lists of types",
                next_step="nothing; the run is retried. If it stays so, see whether the broker reaches its database",
            )
        return names

    def _told(self, questions: tuple[TypeQuestion, ...], stretch: Stretch, whole: bool, deadline: float) -> Page | None:
        changes: dict[str, list[tuple[datetime, bytes]]] = {}
        last: Answer | None = None
        for question in questions:
            found: dict[str, Evolution] = {}
            for answer, evolutions in self._pages(history_parameters(question, stretch), deadline, takes_parts=False):
                last, kept = answer, (evolution.within(stretch) for evolution in evolutions)
                found |= {one.id: one for one in kept if one.instances and one.id not in changes}
                self._bound(found, stretch)
            before = self._before(question.types, found, stretch.start, deadline) if whole else {}
            changes |= {name: list(told(one, before.get(name), whole=whole)) for name, one in found.items()}
        rows = sorted((at, name, body) for name, told_of in changes.items() for at, body in told_of)
        if last is None or not rows:
            return None
        bodies = [body for _, _, body in rows]
        return Page(bodies, tuple(map(sight_linked_data, bodies)), last.received_at, last.broker_time)

    def _before(
        self, types: str, changed: dict[str, Evolution], time: datetime, deadline: float
    ) -> dict[str, Evolution]:
        """What was known of the changed entities before a time."""
        known: dict[str, Evolution] = {}
        for ids in packed(changed):
            parameters = last_known_parameters(types, ids, time)
            for _, evolutions in self._pages(parameters, deadline, takes_parts=True):
                known |= {evolution.id: evolution.until(time) for evolution in evolutions}
        return known

    def _pages(
        self, parameters: dict[str, str], deadline: float, *, takes_parts: bool
    ) -> Iterator[tuple[Answer, list[Evolution]]]:
        """All pages of a question; one that was answered in part is too much, unless parts are what was asked for."""
        paging, asked = TemporalPaging(self.flavour), {**parameters, **held_itself(self.flavour)}
        while not paging.over:
            answer = self._asked(asked | paging.parameters(), deadline)
            if answer.is_partial and not takes_parts:
                raise _TooMuchError(range_end(answer.headers.get("content-range", "")))
            evolutions = [parse_evolution(body) for body in self._page_of(answer, sight_linked_data).entities]
            paging.advance((evolution.id for evolution in evolutions), answer.headers)
            if not evolutions:
                self.probe(deadline)
            yield answer, evolutions
            if not paging.over:
                self._transport.rest(deadline)

    def _asked(self, parameters: dict[str, str], deadline: float) -> Answer:
        question = Question("GET", TEMPORAL_ENTITIES, self._headers, parameters, takes_parts=True)
        try:
            return self._transport.ask(question, deadline)
        except NotOfferedError as error:
            raise NotOfferedError(
                f"the context broker at {self.address} shows no history",
                next_step=f"let it keep one and answer {TEMPORAL_ENTITIES} (Orion-LD: -troe, and Mintaka behind the "
                "same address), or backfill an interval that is archived",
            ) from error

    def _bound(self, found: dict[str, Evolution], stretch: Stretch) -> None:
        too_many = sum(len(one.instances) for one in found.values()) > INSTANCES_AT_ONCE
        if too_many and stretch.halves(None) is not None:
            raise _TooMuchError(None)

    def _halves(self, stretch: Stretch, error: Exception) -> tuple[Stretch, Stretch]:
        halves = stretch.halves(error.reached if isinstance(error, _TooMuchError) else None)
        if halves is not None:
            return halves
        if not isinstance(error, _TooMuchError):
            raise error
        raise ConfigurationError(
            f"more happened at {stretch.start.isoformat()} than the context broker at {self.address} shows at once",
            next_step="let it answer with more instances of an attribute, or select fewer entities",
        ) from None
