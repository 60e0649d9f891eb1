"""The client of an NGSIv2 context broker: health, counts, and every entity that a query selects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from contexture.sources.http.errors import PageTimeoutError, PageTooLargeError
from contexture.sources.http.transport import HttpResponse
from contexture.sources.ngsi.broker import WALK_DEADLINE_SECONDS, Broker, EntityPage
from contexture.sources.ngsi.entity_head import read_entity_head
from contexture.sources.ngsi.paging import KeysetCursor
from contexture.sources.ngsi.query import EntityQuery, build_entities_request

_EMPTY_PAGES_AT_END = 2


class NgsiV2Client(Broker):
    """One service (tenant) of an NGSIv2 context broker."""

    _api_root: ClassVar[str] = "/v2"
    _total_header: ClassVar[str] = "Fiware-Total-Count"

    def probe(self, deadline: float | None = None) -> datetime:
        """Asks for what a broker can't answer without its database; returns the broker's clock, UTC.

        A broker whose database is gone answers every question about entities with "none" and 200.

        Raises:
            RetriableError: the broker or its database is ill.
            ConfigurationError: it refuses us, or is no context broker.
        """
        return self._transport.get("/v2/subscriptions", self._scope("/#"), {"limit": "1"}, deadline).broker_time

    def describe(self, query: EntityQuery) -> str:
        """A walk in one line, for the manifest; holds no secret."""
        return query.describe()

    def count(self, query: EntityQuery) -> int:
        """How many entities a query selects; a hint only, for the broker counts apart from what it shows.

        Raises:
            ContextureError: as `scan`.
        """
        question = build_entities_request(self._scope(query.service_path), query.count_parameters())
        return self._total_of(self._transport.send(question))

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        """The time that the entity at a place of a walk's order shows, None where there is none.

        Raises:
            ContextureError: as `scan`.
        """
        parameters = replace(query, identities_only=True).page_parameters(since=None, offset=place, limit=1)
        answer = self._transport.send(build_entities_request(self._scope(query.service_path), parameters))
        shown = [head.time(query.field) for head in self._parsed(answer, query).heads]
        return shown[0] if shown else None

    def scan(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[EntityPage]:
        """Everything a query selects, page by page; what is there all the while is not missed, whatever changes.

        An entity that changes during the walk may come twice, in its old and its new content. What was not changed is
        not repeated. The walk ended normally when the iterator does.

        Raises:
            RetriableError: the broker is away or ill, or took too long.
            ConfigurationError: it refuses us or the query, or is no context broker.
            RejectedError: one entity alone is too large to be read.
        """
        deadline = self._budget.clock() + deadline_seconds
        cursor: KeysetCursor | None = KeysetCursor.start(query)
        while cursor is not None:
            cursor, page = self._page(query, cursor, deadline)
            if not page.entities:
                # A database that went away shows as an empty page; the cursor has it asked for a second time.
                self.probe(deadline)
            step = cursor.advance(page)
            if step.fresh:
                yield page.only(step.fresh)
            cursor = step.following
            if cursor is not None:
                self._transport.pause(deadline)

    def scan_by_id(
        self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS
    ) -> Iterator[EntityPage]:
        """Everything a query selects by plain page numbers, also what has no time that a walk could go along.

        It may miss what stays and repeat what it gave while others write: for looking once more at what a walk missed.

        Raises:
            ContextureError: as `scan`.
        """
        deadline = self._budget.clock() + deadline_seconds
        cursor, empty_pages = KeysetCursor.start(query), 0
        while True:
            cursor, page = self._page(query, cursor, deadline)
            if page.entities:
                empty_pages = 0
                yield page
                cursor = replace(cursor, offset=cursor.offset + len(page.entities))
            else:
                self.probe(deadline)
                empty_pages += 1
                if empty_pages == _EMPTY_PAGES_AT_END:
                    return
            self._transport.pause(deadline)

    def _page(self, query: EntityQuery, cursor: KeysetCursor, deadline: float) -> tuple[KeysetCursor, EntityPage]:
        """The page at the cursor, in smaller pieces if it is too much at once."""
        while True:
            try:
                question = build_entities_request(self._scope(query.service_path), cursor.parameters(query))
                return cursor, self._parsed(self._transport.send(question, deadline), query)
            except (PageTimeoutError, PageTooLargeError):
                smaller = cursor.halved()
                if smaller.limit == cursor.limit:
                    raise
                cursor = smaller

    def _parsed(self, answer: HttpResponse, query: EntityQuery) -> EntityPage:
        return self._page_of(answer, lambda entity: read_entity_head(entity, query.known_path))

    def _scope(self, service_path: str) -> dict[str, str]:
        scope = {"accept": "application/json", "fiware-servicepath": service_path}
        return scope | ({"fiware-service": self.service} if self.service else {})
