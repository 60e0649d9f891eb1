"""Asking an NGSIv2 context broker: is it well, how much is there, and everything that a query selects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from types import TracebackType
from typing import Self

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.ngsi.answers import PageTimeoutError, PageTooLargeError
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.paging import KeysetCursor
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.sighting import Sighting, sight
from contexture.ngsi.transport import Answer, Patience, Transport

WALK_DEADLINE_SECONDS = 3600.0
_ENTITIES = "/v2/entities"
_PAGE = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a walk: entities as the broker's own bytes, and beside each what is known of it.

    Attributes:
        received_at: when the page arrived, UTC; the clock of batches.
        broker_time: the broker's own clock when it answered, UTC.
    """

    entities: list[bytes]
    sightings: tuple[Sighting, ...]
    received_at: datetime
    broker_time: datetime

    def only(self, indices: tuple[int, ...]) -> Page:
        """The page with these rows alone."""
        if len(indices) == len(self.entities):
            return self
        entities = [self.entities[index] for index in indices]
        return Page(entities, tuple(self.sightings[index] for index in indices), self.received_at, self.broker_time)


class ContextBroker:
    """One service (tenant) of a context broker.

    Args:
        connection: where it is.
        service: the tenant; the default one when empty.
        patience: how long to bear with a broker that is away.
        transport: stands in for the network in tests.

    Raises:
        ConfigurationError: the connection can't be used.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        service: str,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = connection.address
        self.service = service
        self._patience = patience or Patience()
        self._transport = Transport(connection, self._patience, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connections back."""
        self._transport.close()

    def probe(self, deadline: float | None = None) -> datetime:
        """Asks for what a broker can't answer without its database; returns the broker's clock, UTC.

        A broker whose database is gone answers every question about entities with "none" and 200.

        Raises:
            RetriableError: the broker or its database is ill.
            ConfigurationError: it refuses us, or is no context broker.
        """
        return self._transport.get("/v2/subscriptions", self._scope("/#"), {"limit": "1"}, deadline).broker_time

    def count(self, query: EntityQuery) -> int:
        """How many entities a query selects; a hint only, for the broker counts apart from what it shows.

        Raises:
            ContextureError: as `walk`.
        """
        answer = self._transport.get(_ENTITIES, self._scope(query.service_path), query.count_parameters())
        text = answer.headers.get("fiware-total-count", "")
        if not text.isascii() or not text.isdigit():
            raise ConfigurationError(
                f"what is at {self.address} does not say how many entities it has",
                next_step="let the proxy before the broker pass the header Fiware-Total-Count",
            )
        return int(text)

    def walk(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[Page]:
        """Everything a query selects, page by page; what is there all the while is not missed, whatever changes.

        An entity that changes during the walk may come twice, in its old and its new content. What was not changed is
        not repeated. The walk ended normally when the iterator does.

        Raises:
            RetriableError: the broker is away or ill, or took too long.
            ConfigurationError: it refuses us or the query, or is no context broker.
            RejectedError: one entity alone is too large to be read.
        """
        deadline = self._patience.clock() + deadline_seconds
        cursor: KeysetCursor | None = KeysetCursor.start(query)
        while cursor is not None:
            cursor, page = self._page(query, cursor, deadline)
            if not page.entities:
                # A database that went away shows as an empty page, which would look like the end.
                self.probe(deadline)
            step = cursor.advance(page)
            if step.fresh:
                yield page.only(step.fresh)
            cursor = step.following

    def sweep(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[Page]:
        """Everything a query selects by plain page numbers, also what has no time that a walk could go along.

        It may miss what stays and repeat what it gave while others write: for looking once more at what a walk missed.

        Raises:
            ContextureError: as `walk`.
        """
        deadline = self._patience.clock() + deadline_seconds
        cursor = KeysetCursor.start(replace(query, since=None))
        while True:
            cursor, page = self._page(query, cursor, deadline)
            if not page.entities:
                self.probe(deadline)
                return
            yield page
            if len(page.entities) < cursor.limit:
                return
            cursor = replace(cursor, offset=cursor.offset + len(page.entities))

    def _page(self, query: EntityQuery, cursor: KeysetCursor, deadline: float) -> tuple[KeysetCursor, Page]:
        """The page at the cursor, in smaller pieces if it is too much at once."""
        while True:
            try:
                parameters = cursor.parameters(query)
                answer = self._transport.get(_ENTITIES, self._scope(query.service_path), parameters, deadline)
                return cursor, self._parsed(answer, query)
            except (PageTimeoutError, PageTooLargeError):
                smaller = cursor.halved()
                if smaller.limit == cursor.limit:
                    raise
                cursor = smaller

    def _parsed(self, answer: Answer, query: EntityQuery) -> Page:
        try:
            entities = [bytes(entity) for entity in _PAGE.decode(answer.body)]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # `from None`: a decoder's words may quote the data.
            raise ConfigurationError(
                f"what is at {self.address} does not answer with a JSON list of entities ({type(error).__name__})",
                next_step="correct the address in the connection: what stands before /v2",
            ) from None
        sightings = tuple(sight(entity, query.known_path) for entity in entities)
        return Page(entities, sightings, answer.received_at, answer.broker_time)

    def _scope(self, service_path: str) -> dict[str, str]:
        scope = {"accept": "application/json", "fiware-servicepath": service_path}
        return scope | ({"fiware-service": self.service} if self.service else {})
