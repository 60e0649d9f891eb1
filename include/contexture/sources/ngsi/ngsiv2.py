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
    """The client of one service (tenant) of an NGSIv2 context broker."""

    _api_root: ClassVar[str] = "/v2"
    _total_header: ClassVar[str] = "Fiware-Total-Count"

    def probe(self, deadline: float | None = None) -> datetime:
        """Requests subscriptions; see `Broker.probe`. A broker without its database returns no entities, and 200."""
        return self._transport.get("/v2/subscriptions", self._scope("/#"), {"limit": "1"}, deadline).broker_time

    def describe(self, query: EntityQuery) -> str:
        return query.describe()

    def count(self, query: EntityQuery) -> int:
        question = build_entities_request(self._scope(query.service_path), query.count_parameters())
        return self._total_of(self._transport.send(question))

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        parameters = replace(query, identities_only=True).page_parameters(since=None, offset=place, limit=1)
        answer = self._transport.send(build_entities_request(self._scope(query.service_path), parameters))
        shown = [head.time(query.field) for head in self._parsed(answer, query).heads]
        return shown[0] if shown else None

    def scan(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[EntityPage]:
        """See `Broker.scan`. What was not changed is not repeated."""
        deadline = self._budget.clock() + deadline_seconds
        cursor: KeysetCursor | None = KeysetCursor.start(query)
        while cursor is not None:
            cursor, page = self._page(query, cursor, deadline)
            if not page.entities:
                # A database that is away shows as an empty page; the cursor requests it a second time.
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
        """Yields what a query selects by plain page numbers, also what has no time by which a walk could be ordered.

        While others write, it may miss what stays and repeat what it returned. So it only adds to what a walk read.
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
        """Returns the page at the cursor, with fewer rows if it is too large."""
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
