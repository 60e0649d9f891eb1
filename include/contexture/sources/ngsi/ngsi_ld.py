"""The client of an NGSI-LD broker: health, counts, and every entity that a query selects.

NGSI-LD promises no order and its times cannot be a cursor everywhere. What makes page numbers safe:

- pages overlap. When the first row of a page is not one of those that were read without a gap from the first row on,
  something ahead of it was deleted and others took its place. The walk then steps back until it reads such a row, and
  pages overlap by more, so that it proceeds though entities are deleted between any two of them;
- rows have to rise by id, or by time of creation and id, within a page and from page to page: an order that no write
  changes. A walk in that order is complete when it has read as many entities as the broker counted in its first two
  responses. From a broker without an order, which may show other rows on other pages, as many have to come as it ever
  counted;
- where the broker freezes the ids (EntityMap), pages are read in its order. One with fewer rows than it has room for,
  or with none that is new, is requested again: entities were deleted, or the response was not whole;
- no single response ends a walk: a page may be cut short, and its count may be wrong. The walk continues from the last
  row it was shown, and ends where the next page is the last one too and contains nothing new, or after the third such
  page.

A walk that ends otherwise is repeated with another page size. One that ends so the third time is over, and
`is_short`: what it did not read may be there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import ClassVar
from urllib.parse import quote

import httpx
import msgspec

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.errors import PageTimeoutError, PageTooLargeError, TokenRefusedError
from contexture.sources.http.transport import HttpResponse, RetryBudget
from contexture.sources.ngsi.broker import (
    WALK_DEADLINE_SECONDS,
    Broker,
    EntityPage,
    Flavour,
    excludes_federated,
    largest_page,
)
from contexture.sources.ngsi.entity_head import EntityHead, moment, read_linked_data_head
from contexture.sources.ngsi.query import EntityQuery

MAX_WALKS = 3
_EMPTY_PAGES = 2
_MOST_LAST_PAGES = 2
# Of two successive responses one is true.
_FIRST_ANSWERS = 2
# Where an entity is created between any two pages, the last page is never the last one for long.
_MOST_LAST_PAGES_APART = 10


@dataclass(frozen=True, slots=True)
class LinkedDataPage:
    """What a walk needs of one response: the rows, and how many there are in all."""

    rows: Sequence[EntityHead]
    total: int
    entity_map: str = ""


class OffsetWalk:
    """The position in a walk through one type.

    Attributes:
        offset, limit: of the next page; the broker chooses the size where limit is None.
        entity_map: the frozen list whose order the walk has, "" where there is none.
        over: whether the walk has ended.
        is_short: whether it ended without having read what the broker counts.
    """

    def __init__(self, limit: int | None) -> None:
        self.offset = 0
        self.limit = limit
        self.entity_map = ""
        self.over = self.is_short = False
        self._seen: dict[str, str | None] = {}
        self._read_without_gap: set[str] = set()
        self._overlap = 1
        self._walks = 1
        self._begin()

    def _begin(self) -> None:
        self._rises_by_id = self._rises_by_creation = True
        self._last: EntityHead | None = None
        self._first_total = self._greatest_total = self._first_answers = 0
        self._empty_pages = 0
        self._last_pages = self._all_last_pages = 0
        self._asked_again_at: int | None = None

    def advance(self, page: LinkedDataPage) -> tuple[int, ...]:
        """Adds the page that was requested here; returns the indices of rows not seen before."""
        if self.entity_map and page.entity_map != self.entity_map:
            # The list expired and the broker made another one: its pages are not those of the first.
            self._restart()
            return self._sift(page.rows)
        self.entity_map = page.entity_map
        fresh = self._sift(page.rows)
        if self._is_beyond(page):
            self._step_back(page)
            return fresh
        self._learn_size(page)
        self._learn_order(page.rows)
        if self._first_answers < _FIRST_ANSWERS:
            self._first_answers += 1
            self._first_total = max(self._first_total, page.total)
        self._greatest_total = max(self._greatest_total, page.total)
        known = len(self._read_without_gap)
        self._read_without_gap.update(row.id for row in page.rows if row.id is not None)
        if self._is_doubtful(page, brings_nothing=len(self._read_without_gap) == known):
            self._asked_again_at = self.offset
            return fresh
        ends = self._ends(page)
        self._last_pages = self._last_pages + 1 if ends else 0
        self._all_last_pages += ends
        brings_nothing = len(self._read_without_gap) == known
        is_chasing = self._last_pages > _MOST_LAST_PAGES or self._all_last_pages > _MOST_LAST_PAGES_APART
        if is_chasing or (self._last_pages > 1 and brings_nothing):
            self._finish(page)
        else:
            # The last row alone shows whether anything follows it.
            self.offset += max(0, len(page.rows) - 1) if ends else self._stride(page)
        return fresh

    def _is_doubtful(self, page: LinkedDataPage, *, brings_nothing: bool) -> bool:
        """Whether a page of a frozen list, requested once, may have rows that it does not show."""
        if not self.entity_map or self._asked_again_at == self.offset:
            return False
        room = min(self.limit or len(page.rows), page.total - self.offset)
        return len(page.rows) < room or (brings_nothing and not self._last_pages)

    def _is_beyond(self, page: LinkedDataPage) -> bool:
        """Whether there may be rows between those read without a gap and this page."""
        if self.offset == 0 or self.entity_map:
            return False
        if not page.rows:
            return page.total > 0
        return page.rows[0].id is not None and page.rows[0].id not in self._read_without_gap

    def _step_back(self, page: LinkedDataPage) -> None:
        """Goes to an earlier page; this one's rows say nothing about where the walk is."""
        if not page.rows:
            self._empty_pages += 1
            if self._empty_pages > _EMPTY_PAGES:
                self._restart()
                return
        limit = self.limit or 1
        self.offset = max(0, min(self.offset, page.total) - limit)
        self._overlap = min(max(1, limit // 2), 4 * self._overlap)

    def _learn_size(self, page: LinkedDataPage) -> None:
        """Learns from a full page which size the broker really uses."""
        rows = len(page.rows)
        if rows and self.offset == 0 and rows < page.total and (self.limit is None or rows < self.limit):
            self.limit = rows

    def _learn_order(self, rows: Sequence[EntityHead]) -> None:
        """Learns whether rows rise within the page and follow the last row of the pages before."""
        fresh = [row for row in rows if row.id not in self._read_without_gap]
        across = [self._last, *fresh] if self._last is not None else fresh
        for one, other in (*pairwise(rows), *pairwise(across)):
            self._rises_by_id &= (one.id or "") < (other.id or "")
            self._rises_by_creation &= _was_created_before(one, other)
        self._last = fresh[-1] if fresh else self._last

    def _sift(self, rows: Sequence[EntityHead]) -> tuple[int, ...]:
        fresh = []
        for index, row in enumerate(rows):
            if row.id is None or row.id not in self._seen or self._seen[row.id] != row.modified:
                fresh.append(index)
            if row.id is not None:
                self._seen[row.id] = row.modified
        return tuple(fresh)

    def _ends(self, page: LinkedDataPage) -> bool:
        if self.entity_map:
            return self.offset + self._stride(page) >= page.total
        return self.offset + len(page.rows) >= page.total or not page.rows

    def _stride(self, page: LinkedDataPage) -> int:
        if self.entity_map:
            # What was deleted from a frozen list leaves a gap in its page.
            return self.limit or max(1, len(page.rows))
        return max(1, len(page.rows) - self._overlap)

    def _finish(self, page: LinkedDataPage) -> None:
        is_ordered = self._rises_by_id or self._rises_by_creation
        counted = self._first_total if is_ordered else self._greatest_total
        if len(self._read_without_gap) >= counted or any(row.id is None for row in page.rows):
            self.over = True
        else:
            self._restart()

    def _restart(self) -> None:
        if self._walks >= MAX_WALKS:
            self.over = self.is_short = True
            return
        self._walks += 1
        self.offset, self.entity_map = 0, ""
        self._read_without_gap.clear()
        self._begin()
        self.limit = max(2, (self.limit or 2) * 2 // 3)


def _was_created_before(one: EntityHead, other: EntityHead) -> bool:
    first, second = moment(one.created), moment(other.created)
    if first is None or second is None or one.id is None or other.id is None:
        return False
    return (first, one.id) < (second, other.id)


ENTITIES = "/ngsi-ld/v1/entities"
TYPES = "/ngsi-ld/v1/types"
SUBSCRIPTIONS = "/ngsi-ld/v1/subscriptions"
EVERY_SCOPE = frozenset(("/", "/#"))
"""Service paths that select no scope: NGSI-LD has scopes instead, and an entity may have none."""

_GEOMETRIES = {"point": "Point", "line": "LineString", "polygon": "Polygon"}
_RELATIONS = {"coveredBy": "within"}
_TYPES_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class TypeQuery:
    """A query for the entities of some types.

    Attributes:
        types: their names, joined by commas: entities of any of them.
        since: only what was modified from this time on; all where None.
    """

    query: EntityQuery
    types: str
    since: str | None = None

    def page(self, *, offset: int, limit: int | None, entity_map: bool) -> dict[str, str]:
        """Returns the parameters of one page; without a limit the broker chooses."""
        # The simplified form is the smallest that has id, type and the time of creation.
        asked = {"options": "keyValues,sysAttrs" if self.query.identities_only else "sysAttrs"}
        asked |= {"count": "true", "offset": str(offset)}
        if limit is not None:
            asked["limit"] = str(limit)
        if entity_map:
            asked["entityMap"] = "true"
        return self.selection() | asked

    def count(self) -> dict[str, str]:
        """Returns the parameters that request how many there are."""
        return self.selection() | {"limit": "0", "count": "true"}

    def selection(self) -> dict[str, str]:
        """Returns the parameters that select entities."""
        query = self.query
        given = {
            "type": self.types,
            "id": ",".join(query.ids),
            "idPattern": query.id_pattern,
            "q": _conditions((query.q, query.mq), self.since),
            "attrs": ",".join(query.attributes),
            "scopeQ": None if EVERY_SCOPE.intersection(query.service_path.split(",")) else query.service_path,
            **_geographic(query),
        }
        return {name: value for name, value in given.items() if value}


def combine_type_queries(names: Iterable[str]) -> Iterator[str]:
    """Yields types joined by commas, each time as many as an address has room for."""
    held, length = list[str](), 0
    for name in names:
        if held and length + len(quote(name, safe="")) > _TYPES_CHARACTERS:
            yield ",".join(held)
            held, length = [], 0
        held.append(name)
        length += len(quote(name, safe="")) + 3
    if held:
        yield ",".join(held)


def headers(tenant: str, context: str) -> dict[str, str]:
    """Returns the headers that name the tenant and the @context of names."""
    sent = {"accept": "application/json"}
    if tenant:
        sent["ngsild-tenant"] = tenant
    if context:
        sent["link"] = f'<{context}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
    return sent


def _conditions(given: Iterable[str | None], since: str | None) -> str | None:
    """Returns all conditions in one; alternatives of the user stay together.

    NGSIv2's conditions on metadata are conditions on attributes of attributes here (`speed.accuracy>0.9`).
    """
    parts = [part for part in ((text or "").strip().strip(";") for text in given) if part]
    if since is not None:
        parts.append(f"modifiedAt>={since}")
    if len(parts) > 1:
        parts = [f"({part})" if "|" in part else part for part in parts]
    return ";".join(parts) or None


def _geographic(query: EntityQuery) -> Mapping[str, str]:
    """Returns NGSIv2's georel, geometry and coords as NGSI-LD writes them: GeoJSON names, longitude first."""
    if query.georel is None or query.geometry is None or query.coords is None:
        return {}
    if query.geometry not in _GEOMETRIES:
        raise ConfigurationError(
            f"NGSI-LD has no geometry {query.geometry!r}", next_step="write source.geometry and coords as a polygon"
        )
    try:
        points = [[float(part) for part in reversed(pair.split(","))] for pair in query.coords.split(";")]
    except ValueError:
        raise ConfigurationError(
            "source.coords are not numbers", next_step="write latitude,longitude joined by ;"
        ) from None
    shaped: object = {"point": points[0], "line": points, "polygon": [points]}[query.geometry]
    relation = _RELATIONS.get(query.georel, query.georel).replace("Distance:", "Distance==")
    coordinates = json.dumps(shaped, separators=(",", ":"))
    return {"georel": relation, "geometry": _GEOMETRIES[query.geometry], "coordinates": coordinates}


LONG_AGO = "1970-01-01T00:00:00Z"


class _Types(msgspec.Struct):
    typeList: list[str] = []  # noqa: N815  # the name in the JSON


class NgsiLdClient(Broker):
    """The client of one tenant of an NGSI-LD broker; other arguments as `Broker`.

    Args:
        context: URL of the @context that names are written by; without it a broker responds with full IRIs.
        flavour: which broker it is, where that is known.
    """

    counts_stretches: ClassVar[bool] = False
    counts_types_apart: ClassVar[bool] = True
    _api_root: ClassVar[str] = "/ngsi-ld"
    _total_header: ClassVar[str] = "NGSILD-Results-Count"

    def __init__(
        self,
        connection: BrokerConnection,
        service: str,
        *,
        context: str = "",
        flavour: Flavour = "unknown",
        budget: RetryBudget | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(connection, service, budget=budget, transport=transport)
        self.flavour = flavour
        self._headers = headers(service, context)

    def probe(self, deadline: float | None = None) -> datetime:
        """Requests the list of types, which a broker cannot return without its database; see `Broker.probe`.

        Orion-LD is built on Orion, which returns an empty list and 200 then (measured), so subscriptions are requested
        too, as from Orion.
        """
        answer = self._transport.get(TYPES, self._headers, {}, deadline)
        if self.flavour == "orion-ld":
            answer = self._transport.get(SUBSCRIPTIONS, self._headers, {"limit": "1"}, deadline)
        return answer.broker_time

    def count(self, query: EntityQuery) -> int:
        """See `Broker.count`; an entity whose types are requested apart is counted for each."""
        return sum(self._counted(question, None) for question in self._questions(query, None))

    def scan(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[EntityPage]:
        """See `Broker.scan`.

        Types are requested by name, each time as many as an address has room for. A walk along `dateModified` returns
        what changed since, or everything where the broker cannot find that out. An entity that changes during the walk,
        or whose types are requested apart, may come twice. A walk through everything may end with fewer entities than
        the broker counts.

        Raises:
            RetriableError: also where the broker shows fewer changed entities than it counts.
        """
        deadline = self._budget.clock() + deadline_seconds
        for question in self._questions(query, deadline):
            yield from self._walk_types(question, deadline)

    def describe(self, query: EntityQuery) -> str:
        """See `Broker.describe`; names the flavour that was found."""
        since = query.since if query.field == "dateModified" else None
        asked = TypeQuery(query, ",".join(query.types) or query.type_pattern or "every", since).selection()
        return " ".join((self.flavour, ENTITIES, *(f"{name}={value}" for name, value in asked.items())))

    def types(self, deadline: float | None = None) -> tuple[str, ...]:
        """Returns the types there are, because a query without any is refused as too broad."""
        answer = self._transport.get(TYPES, self._headers, {}, deadline)
        try:
            return tuple(msgspec.json.decode(answer.body, type=_Types).typeList)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._no_broker("a list of types", error) from None

    def _questions(self, query: EntityQuery, deadline: float | None) -> Iterator[TypeQuery]:
        since = query.since if query.field == "dateModified" else None
        for names in combine_type_queries(query.types or self._types_like(query.type_pattern, deadline)):
            whole = TypeQuery(query, names)
            yield replace(whole, since=since) if since and self._finds_changes(whole, deadline) else whole

    def _types_like(self, pattern: str | None, deadline: float | None) -> Iterator[str]:
        """Returns the types there are whose names match; NGSI-LD itself has no patterns of types."""
        names = self.types(deadline)
        return (name for name in names if pattern is None or re.search(pattern, name))

    def _finds_changes(self, whole: TypeQuery, deadline: float | None) -> bool:
        """Whether the broker finds entities by the time of their change; some return [] to that, or refuse it."""
        try:
            found = self._counted(replace(whole, since=LONG_AGO), deadline)
        except TokenRefusedError:
            raise
        except ConfigurationError:
            return False
        return found > 0 or self._counted(whole, deadline) == 0

    def _counted(self, question: TypeQuery, deadline: float | None) -> int:
        parameters = {**question.count(), **excludes_federated(self.flavour)}
        return self._total_of(self._transport.get(ENTITIES, self._headers, parameters, deadline))

    def _walk_types(self, question: TypeQuery, deadline: float) -> Iterator[EntityPage]:
        walk = OffsetWalk(min(question.query.page_size, largest_page(self.flavour)))
        while not walk.over:
            answer = self._fetch_page(question, walk, deadline)
            page = self._page_of(answer, read_linked_data_head)
            if not page.entities:
                # A database that is away shows as an empty page, which would look like the end.
                self.probe(deadline)
            name = answer.headers.get("ngsild-entitymap", "")
            fresh = walk.advance(LinkedDataPage(page.heads, self._total_of(answer), name))
            if fresh:
                yield page.only(fresh)
            if not walk.over:
                self._transport.pause(deadline)
        if walk.is_short and question.query.since is not None:
            # Entities that enter the selection meanwhile would hide from any count what the walk did not read.
            raise RetriableError(
                f"{self.address} counts more changed entities than its pages show",
                next_step="wait for the retry of the run, or read when less is written",
            )

    def _fetch_page(self, question: TypeQuery, walk: OffsetWalk, deadline: float) -> HttpResponse:
        """Returns the page at the walk's place: smaller if it is too large, of the broker's own size if it refuses."""
        named = {"ngsild-entitymap": walk.entity_map} if walk.entity_map else {}
        offers = self.flavour in {"scorpio", "unknown"} and not walk.offset
        while True:
            parameters = question.page(offset=walk.offset, limit=walk.limit, entity_map=offers)
            parameters |= excludes_federated(self.flavour)
            try:
                return self._transport.get(ENTITIES, self._headers | named, parameters, deadline)
            except (PageTimeoutError, PageTooLargeError):
                if walk.limit is None or walk.limit <= 2:
                    raise
                walk.limit = max(2, walk.limit // 2)
            except ConfigurationError as error:
                # A broker may not know the parameter entityMap, or be configured for smaller pages.
                if isinstance(error, TokenRefusedError) or walk.offset or not (offers or walk.limit):
                    raise
                offers, walk.limit = False, walk.limit if offers else None
