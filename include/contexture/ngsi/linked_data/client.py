"""Asking an NGSI-LD broker: is it well, how much is there, and everything that a query selects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import httpx
import msgspec

from contexture.errors import ConfigurationError, RetriableError
from contexture.ngsi.answers import PageTimeoutError, PageTooLargeError, TokenRefusedError
from contexture.ngsi.broker import WALK_DEADLINE_SECONDS, Broker, Page
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.linked_data.flavour import Flavour, held_itself, largest_page
from contexture.ngsi.linked_data.paging import LinkedDataPage, OffsetWalk
from contexture.ngsi.linked_data.questions import ENTITIES, SUBSCRIPTIONS, TYPES, TypeQuestion, headers, packed
from contexture.ngsi.linked_data.sighting import sight_linked_data
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.transport import Answer, Patience

LONG_AGO = "1970-01-01T00:00:00Z"


class _Types(msgspec.Struct):
    typeList: list[str] = []  # noqa: N815  # the name in the JSON


class LinkedDataBroker(Broker):
    """One tenant of an NGSI-LD broker.

    Args:
        connection: where it is.
        service: the tenant; the default one when empty.
        context: URL of the @context that names are written by; without it a broker answers with full IRIs.
        flavour: which broker it is, where that is known.
        patience: how long to bear with a broker that is away.
        transport: stands in for the network in tests.

    Raises:
        ConfigurationError: the connection can't be used.
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
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(connection, service, patience=patience, transport=transport)
        self.flavour = flavour
        self._headers = headers(service, context)

    def probe(self, deadline: float | None = None) -> datetime:
        """Asks for what a broker can't answer without its database; returns the broker's clock, UTC.

        That is the list of types. Orion-LD is built on Orion, which answers it with "none" and 200 then (measured), so
        it is asked for subscriptions too, as Orion is.

        Raises:
            RetriableError: the broker or its database is ill.
            ConfigurationError: it refuses us, or is no NGSI-LD broker.
        """
        answer = self._transport.get(TYPES, self._headers, {}, deadline)
        if self.flavour == "orion-ld":
            answer = self._transport.get(SUBSCRIPTIONS, self._headers, {"limit": "1"}, deadline)
        return answer.broker_time

    def count(self, query: EntityQuery) -> int:
        """How many entities a query selects; one whose types are asked for apart is counted for each.

        Raises:
            ContextureError: as `walk`.
        """
        return sum(self._counted(question, None) for question in self._questions(query, None))

    def walk(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[Page]:
        """Everything a query selects, page by page; what is there all the while is not missed.

        Types are asked for by name, as many at once as an address has room for. A walk along `dateModified` gives what
        changed since, or everything where the broker can't find that out. An entity that changes during the walk, or
        whose types are asked for apart, may come twice. A walk through everything may end with fewer entities than the
        broker counts: compare with `count`.

        Raises:
            RetriableError: the broker is away or ill, took too long, or shows fewer changed entities than it counts.
            ConfigurationError: it refuses us or the query, or is no NGSI-LD broker.
            RejectedError: one entity alone is too large to be read.
        """
        deadline = self._patience.clock() + deadline_seconds
        for question in self._questions(query, deadline):
            yield from self._walk_types(question, deadline)

    def describe(self, query: EntityQuery) -> str:
        """The walk in one line, with the flavour that was found, for the manifest; holds no secret."""
        since = query.since if query.field == "dateModified" else None
        asked = TypeQuestion(query, ",".join(query.types) or query.type_pattern or "every", since).selection()
        return " ".join((self.flavour, ENTITIES, *(f"{name}={value}" for name, value in asked.items())))

    def types(self, deadline: float | None = None) -> tuple[str, ...]:
        """The types there are, for a query without any is refused as too broad."""
        answer = self._transport.get(TYPES, self._headers, {}, deadline)
        try:
            return tuple(msgspec.json.decode(answer.body, type=_Types).typeList)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._no_broker("a list of types", error) from None

    def _questions(self, query: EntityQuery, deadline: float | None) -> Iterator[TypeQuestion]:
        since = query.since if query.field == "dateModified" else None
        for names in packed(query.types or self._types_like(query.type_pattern, deadline)):
            whole = TypeQuestion(query, names)
            yield replace(whole, since=since) if since and self._finds_changes(whole, deadline) else whole

    def _types_like(self, pattern: str | None, deadline: float | None) -> Iterator[str]:
        """The types there are whose names match; NGSI-LD itself has no patterns of types."""
        names = self.types(deadline)
        return (name for name in names if pattern is None or re.search(pattern, name))

    def _finds_changes(self, whole: TypeQuestion, deadline: float | None) -> bool:
        """Whether the broker finds entities by the time of their change; some answer [] to that, or refuse it."""
        try:
            found = self._counted(replace(whole, since=LONG_AGO), deadline)
        except TokenRefusedError:
            raise
        except ConfigurationError:
            return False
        return found > 0 or self._counted(whole, deadline) == 0

    def _counted(self, question: TypeQuestion, deadline: float | None) -> int:
        parameters = {**question.count(), **held_itself(self.flavour)}
        return self._total_of(self._transport.get(ENTITIES, self._headers, parameters, deadline))

    def _walk_types(self, question: TypeQuestion, deadline: float) -> Iterator[Page]:
        walk = OffsetWalk(min(question.query.page_size, largest_page(self.flavour)))
        while not walk.over:
            answer = self._answer(question, walk, deadline)
            page = self._page_of(answer, sight_linked_data)
            if not page.entities:
                # A database that went away shows as an empty page, which would look like the end.
                self.probe(deadline)
            name = answer.headers.get("ngsild-entitymap", "")
            fresh = walk.advance(LinkedDataPage(page.sightings, self._total_of(answer), name))
            if fresh:
                yield page.only(fresh)
            if not walk.over:
                self._transport.rest(deadline)
        if walk.is_short and question.query.since is not None:
            # Entities that enter the selection meanwhile would hide from any count what the walk did not meet.
            raise RetriableError(
                f"{self.address} counts more changed entities than its pages show",
                next_step="let the run be retried, or read when less is written",
            )

    def _answer(self, question: TypeQuestion, walk: OffsetWalk, deadline: float) -> Answer:
        """The page at the walk's place: smaller if it is too much at once, of the broker's own size if it refuses."""
        named = {"ngsild-entitymap": walk.entity_map} if walk.entity_map else {}
        offers = self.flavour in {"scorpio", "unknown"} and not walk.offset
        while True:
            parameters = question.page(offset=walk.offset, limit=walk.limit, entity_map=offers)
            parameters |= held_itself(self.flavour)
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
