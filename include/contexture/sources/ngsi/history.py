"""Reading the history of an NGSI-LD broker: the versions of entities in an interval, in the order of the changes.

The interval is read in one request. A response with only a part of it (206) splits it in two, at the time that the part
reaches. So a version is returned only from a complete response, and memory holds one part of the interval.

GS CIM 009: the temporal query language is clause 4.11, the query 5.7.4, responses with a part 6.3.10. Whether `between`
includes its ends differs from broker to broker, so one millisecond more is requested, and times are checked.

There, an attribute is the list of its instances, each with the time of its change. Returned are whole entities, or only
what changed, as the publication's data model requires.

The past does not change, so pages by places do not shift, unless history itself is deleted; the counts show that.

No single response ends the pages: a broker that lost its database for a moment responds with none, or with fewer, and
counts them. After a page that seems to be the last one the request is repeated, and the response has to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

import orjson

from contexture.errors import ConfigurationError, RetriableError
from contexture.events import parse_json
from contexture.sources.http.errors import NotOfferedError, PageTimeoutError, PageTooLargeError
from contexture.sources.http.transport import HttpRequest, HttpResponse
from contexture.sources.ngsi.attributes import instances, is_plain, is_removed
from contexture.sources.ngsi.broker import WALK_DEADLINE_SECONDS, EntityPage, Flavour, excludes_federated
from contexture.sources.ngsi.entity import EntityError, broker_time, system_time
from contexture.sources.ngsi.entity_head import read_linked_data_head
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient, TypeQuery, combine_type_queries
from contexture.sources.ngsi.paging import broker_text
from contexture.sources.ngsi.query import EntityQuery

TEMPORAL_ENTITIES = "/ngsi-ld/v1/temporal/entities"
MILLISECOND = timedelta(milliseconds=1)
_LONGEST_RANGE = 200

_MOMENT = r"\d{4}-\d\d-\d\dT[^/]*?"
_RANGE = re.compile(rf"\s*date-time\s+{_MOMENT}-(?P<end>{_MOMENT})/\S+\s*", re.IGNORECASE)
_TIMES = {"timeproperty": "modifiedAt", "options": "sysAttrs"}


@dataclass(frozen=True, slots=True)
class HistoryInterval:
    """Part of a history, UTC; its end is not in it. Both are whole milliseconds."""

    start: datetime
    end: datetime

    def __contains__(self, time: datetime) -> bool:
        return self.start <= time < self.end

    def parameters(self) -> dict[str, str]:
        """Returns the parameters that request what happened in it, and perhaps right before it."""
        between = {"timerel": "between", "timeAt": broker_text(self.start - MILLISECOND)}
        return {**between, "endTimeAt": broker_text(self.end), **_TIMES}

    def halves(self, reached: datetime | None) -> tuple[HistoryInterval, HistoryInterval] | None:
        """Returns two parts, cut at `reached` if that is inside, else in the middle; None if it cannot be cut."""
        cut = whole_millisecond(reached) if reached is not None else self.start
        if not self.start < cut < self.end:
            cut = whole_millisecond(self.start + (self.end - self.start) / 2)
        if cut == self.start:
            return None
        return HistoryInterval(self.start, cut), HistoryInterval(cut, self.end)


def whole_millisecond(time: datetime) -> datetime:
    """Returns a time cut to milliseconds, as brokers show them."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def history_parameters(query: TypeQuery, interval: HistoryInterval) -> dict[str, str]:
    """Returns the parameters that request how the selected entities changed; paging is added to them."""
    return query.selection() | interval.parameters()


def last_known_parameters(types: str, ids: str, before: datetime) -> dict[str, str]:
    """Returns the parameters that request the last instance of each attribute of these entities before a time."""
    selection = {"type": types, "id": ids, "timerel": "before", "timeAt": broker_text(before), "lastN": "1"}
    return selection | _TIMES


def range_end(content_range: str) -> datetime | None:
    """Returns the latest time in a response by its Content-Range; None where that shows none.

    It is `date-time <start>-<end>/<size>`, without `lastN` in the order of time (clause 6.3.10).
    """
    found = _RANGE.fullmatch(content_range) if len(content_range) <= _LONGEST_RANGE else None
    return broker_time(found["end"]) if found else None


_HEAD = frozenset(("id", "type", "@context"))
_PLAIN = frozenset(("createdAt", "modifiedAt", "deletedAt", "expiresAt"))
_SCOPE = "scope"

AttributeKey = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Instance:
    """An attribute from a time on; content None: it was removed."""

    key: AttributeKey
    at: datetime
    content: object


@dataclass(frozen=True, slots=True)
class EntityHistory:
    """The instances of one entity in a response, in the order of their times.

    Attributes:
        id: of the entity.
        head: what does not change: id, type, and the @context where the broker sends it.
    """

    id: str
    head: Mapping[str, object]
    instances: tuple[Instance, ...]

    def within(self, interval: HistoryInterval) -> EntityHistory:
        return EntityHistory(self.id, self.head, tuple(one for one in self.instances if one.at in interval))

    def until(self, time: datetime) -> EntityHistory:
        """Returns only what happened before a time."""
        return EntityHistory(self.id, self.head, tuple(one for one in self.instances if one.at < time))


def parse_entity_history(body: bytes) -> EntityHistory:
    """Parses one entity of a temporal response; number literals stay as they are.

    Raises:
        EntityError: it is no entity, or an instance has no time.
    """
    document = _document(body)
    name = document.get("id")
    if not isinstance(name, str):
        raise _unreadable("an entity of the history has no id")
    found = (one for member, value in document.items() for one in _instances(member, value))
    head = {member: value for member, value in document.items() if member in _HEAD}
    return EntityHistory(name, head, tuple(sorted(found, key=attrgetter("at"))))


def entity_versions(
    history: EntityHistory, before: EntityHistory | None, *, whole: bool
) -> Iterator[tuple[datetime, bytes]]:
    """Yields the entity after each of its changes, in NGSI-LD's normalized form, with the time.

    Args:
        history: its changes.
        before: what was known of it before them.
        whole: everything that was known then; else only what changed, and nothing where something was only removed.
    """
    held = _applied({}, before.instances) if before is not None else {}
    for at, group in groupby(history.instances, key=attrgetter("at")):
        changed = tuple(group)
        held = _applied(held if whole else {}, changed)
        if whole or held:
            times = {"modifiedAt": at.isoformat().replace("+00:00", "Z")}
            yield at, orjson.dumps({**history.head, **times, **_members(held)})


def _applied(held: Mapping[AttributeKey, object], changed: Iterable[Instance]) -> dict[AttributeKey, object]:
    now = dict(held)
    for one in changed:
        if one.content is None:
            now.pop(one.key, None)
        else:
            now[one.key] = one.content
    return now


def _members(held: Mapping[AttributeKey, object]) -> dict[str, object]:
    """Returns attributes as an entity has them: those with several instances as a list, the scope as it is."""
    found: dict[str, list[object]] = {}
    for (name, _), content in held.items():
        found.setdefault(name, []).append(content)
    return {name: contents[0] if len(contents) == 1 else contents for name, contents in found.items()}


def _instances(name: str, value: object) -> Iterator[Instance]:
    if (
        name in _HEAD
        or (name in _PLAIN and is_plain(value))
        or value == []
        or (name == _SCOPE and not _is_dated(value))
    ):
        return
    for dataset_id, one in instances(name, value):
        if not isinstance(one, dict):
            raise _unreadable(f"the history of the attribute {name!a} holds no instances")
        at = _time(one, "modifiedAt") or _time(one, "deletedAt") or _time(one, "createdAt")
        if at is None:
            raise _unreadable(f"an instance of the attribute {name!a} has no time")
        content = one.get("value") if name == _SCOPE else one
        yield Instance((name, dataset_id), at, None if is_removed(one) else content)


def _is_dated(value: object) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict)


def _time(instance: Mapping[str, object], member: str) -> datetime | None:
    return broker_time(system_time(instance.get(member)))


def _document(body: bytes) -> dict[str, object]:
    try:
        value = parse_json(body)
    except (ValueError, TypeError, RecursionError):
        # `from None`: a decoder's message may quote the data.
        raise _unreadable("an entity of the history is not JSON that can be read") from None
    if not isinstance(value, dict):
        raise _unreadable("an entity of the history is not a JSON object")
    return value


def _unreadable(message: str) -> EntityError:
    return EntityError(message[:200], next_step="check the broker's response to this query", rule="body")


PAGE_SIZE = 100
"""What every broker grants (Stellio's largest)."""

_LONGEST_NUMBER = 18  # digits
_NEXT_PAGE = "next-page"
_COUNT = "ngsild-results-count"


@dataclass(slots=True)
class TemporalPaging:
    """The position of a reader in the pages of a temporal query.

    Attributes:
        flavour: Mintaka, which reads Orion-LD's history, has anchors (`pageAnchor`, `Next-Page`); others `offset`.
        over: whether no page is left.
    """

    flavour: Flavour
    over: bool = False
    _offset: int = 0
    _anchor: str = ""
    _total: int | None = None
    _met: set[str] = field(default_factory=set)
    _seems_over: bool = False

    def parameters(self) -> dict[str, str]:
        if self._anchor or self.flavour == "orion-ld":
            return {"pageSize": str(PAGE_SIZE)} | ({"pageAnchor": self._anchor} if self._anchor else {})
        return {"limit": str(PAGE_SIZE), "offset": str(self._offset), "count": "true"}

    def advance(self, ids: Iterable[str], headers: Mapping[str, str]) -> None:
        """Moves behind a page.

        Raises:
            RetriableError: history was deleted meanwhile, or the broker returns the same page again.
        """
        page = tuple(ids)
        is_requested_again = self._seems_over and self.flavour == "orion-ld"
        if page and self._met.issuperset(page) and not is_requested_again:
            # It would be requested until the deadline.
            raise _same_again()
        self._met.update(page)
        self._offset += len(page)
        following = headers.get(_NEXT_PAGE, "")
        total = _number(headers.get(_COUNT, ""))
        if self._total is not None and total != self._total:
            raise _changed()
        self._total = total
        ends = not page or not self._is_more(following)
        self.over = ends and self._seems_over
        self._seems_over = ends
        if not ends or self.flavour != "orion-ld":
            # The last page of anchors is requested again: nothing leads behind it.
            self._anchor = following
        if self.over and total is not None and len(self._met) < total:
            raise _changed()

    def _is_more(self, following: str) -> bool:
        if following or self.flavour == "orion-ld":
            return bool(following)
        return self._total is None or self._offset < self._total


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def _same_again() -> RetriableError:
    return RetriableError(
        "the broker returns entities of an earlier page of its history again",
        next_step="wait for the retry if much was written in the meantime. If the error persists, the broker ignores "
        "`offset`: backfill an archived interval",
    )


def _changed() -> RetriableError:
    return RetriableError(
        "the broker's history changed while it was read",
        next_step=(
            "wait for the retry of the run. If the error persists, compare what the broker counts with what it shows"
        ),
    )


INSTANCES_AT_ONCE = 50_000
"""An interval with more instances is cut, to bound memory."""


class _TooMuchError(Exception):
    """An interval is too long; `reached` is the time up to which a part was returned."""

    def __init__(self, reached: datetime | None) -> None:
        super().__init__(reached)
        self.reached = reached


class NgsiLdHistoryClient(NgsiLdClient):
    """The client of one tenant of an NGSI-LD broker with a history; arguments as `NgsiLdClient`."""

    def history(
        self,
        query: EntityQuery,
        interval: HistoryInterval,
        *,
        whole: bool = True,
        deadline_seconds: float = WALK_DEADLINE_SECONDS,
    ) -> Iterator[EntityPage]:
        """Yields the selected entities after each of their changes, in the order of these (then by id).

        Deletions are not among them: brokers store them apart, or not at all.

        Args:
            query: which entities.
            interval: of the changes, by `modifiedAt`, the broker's clock.
            whole: return all that was known of an entity then; else only what changed.
            deadline_seconds: after which nothing is requested.

        Raises:
            NotOfferedError: the broker stores no history, or shows none.
            RetriableError: it is away or ill, took too long, or history was deleted meanwhile.
            ConfigurationError: it refuses us or the query, or more happened at one moment than it shows.
            EntityError: what it shows is no history.
        """
        deadline = self._budget.clock() + deadline_seconds
        names = query.types or self._types_twice(query.type_pattern, deadline)
        questions = tuple(TypeQuery(query, types) for types in combine_type_queries(names))
        waiting = [interval]
        while waiting:
            interval = waiting.pop()
            try:
                page = self._read_interval(questions, interval, whole, deadline)
            except (_TooMuchError, PageTimeoutError, PageTooLargeError) as error:
                waiting.extend(reversed(self._halves(interval, error)))
            else:
                if page is not None:
                    yield page

    def _types_twice(self, pattern: str | None, deadline: float) -> tuple[str, ...]:
        """Returns the types, when two responses agree: a list without a type would leave out all its changes."""
        names = tuple(self._types_like(pattern, deadline))
        if set(names) != set(self._types_like(pattern, deadline)):
            raise RetriableError(
                f"the context broker at {self.address} returned two different lists of types",
                next_step=(
                    "wait for the retry of the run. If the error persists, check whether the broker reaches its "
                    "database"
                ),
            )
        return names

    def _read_interval(
        self, questions: tuple[TypeQuery, ...], interval: HistoryInterval, whole: bool, deadline: float
    ) -> EntityPage | None:
        changes: dict[str, list[tuple[datetime, bytes]]] = {}
        last: HttpResponse | None = None
        for question in questions:
            found: dict[str, EntityHistory] = {}
            for answer, histories in self._pages(history_parameters(question, interval), deadline, takes_parts=False):
                last, kept = answer, (history.within(interval) for history in histories)
                found |= {one.id: one for one in kept if one.instances and one.id not in changes}
                self._bound(found, interval)
            before = self._before(question.types, found, interval.start, deadline) if whole else {}
            changes |= {name: list(entity_versions(one, before.get(name), whole=whole)) for name, one in found.items()}
        rows = sorted((at, name, body) for name, versions in changes.items() for at, body in versions)
        if last is None or not rows:
            return None
        bodies = [body for _, _, body in rows]
        return EntityPage(bodies, tuple(map(read_linked_data_head, bodies)), last.received_at, last.broker_time)

    def _before(
        self, types: str, changed: dict[str, EntityHistory], time: datetime, deadline: float
    ) -> dict[str, EntityHistory]:
        """Returns what was known of the changed entities before a time."""
        known: dict[str, EntityHistory] = {}
        for ids in combine_type_queries(changed):
            parameters = last_known_parameters(types, ids, time)
            for _, histories in self._pages(parameters, deadline, takes_parts=True):
                known |= {history.id: history.until(time) for history in histories}
        return known

    def _pages(
        self, parameters: dict[str, str], deadline: float, *, takes_parts: bool
    ) -> Iterator[tuple[HttpResponse, list[EntityHistory]]]:
        """Yields all pages of a query. A partial response means that it asks for too much, unless it takes parts."""
        paging, asked = TemporalPaging(self.flavour), {**parameters, **excludes_federated(self.flavour)}
        while not paging.over:
            answer = self._asked(asked | paging.parameters(), deadline)
            if answer.is_partial and not takes_parts:
                raise _TooMuchError(range_end(answer.headers.get("content-range", "")))
            histories = [parse_entity_history(body) for body in self._page_of(answer, read_linked_data_head).entities]
            paging.advance((history.id for history in histories), answer.headers)
            if not histories:
                self.probe(deadline)
            yield answer, histories
            if not paging.over:
                self._transport.pause(deadline)

    def _asked(self, parameters: dict[str, str], deadline: float) -> HttpResponse:
        question = HttpRequest("GET", TEMPORAL_ENTITIES, self._headers, parameters, takes_parts=True)
        try:
            return self._transport.send(question, deadline)
        except NotOfferedError as error:
            raise NotOfferedError(
                f"the context broker at {self.address} serves no history",
                next_step=f"configure it to store a history and to serve {TEMPORAL_ENTITIES} (Orion-LD: -troe, and "
                "Mintaka behind the same address), or backfill an archived interval",
            ) from error

    def _bound(self, found: dict[str, EntityHistory], interval: HistoryInterval) -> None:
        too_many = sum(len(one.instances) for one in found.values()) > INSTANCES_AT_ONCE
        if too_many and interval.halves(None) is not None:
            raise _TooMuchError(None)

    def _halves(self, interval: HistoryInterval, error: Exception) -> tuple[HistoryInterval, HistoryInterval]:
        halves = interval.halves(error.reached if isinstance(error, _TooMuchError) else None)
        if halves is not None:
            return halves
        if not isinstance(error, _TooMuchError):
            raise error
        raise ConfigurationError(
            f"more happened at {interval.start.isoformat()} than the context broker at {self.address} returns in one "
            "response",
            next_step="configure it to return more instances of an attribute, or select fewer entities",
        ) from None
