"""What the clients of all brokers share: one service of a broker, its connections, and pages of its entities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, Self, get_args

import httpx

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import HttpResponse, HttpTransport, RetryBudget
from contexture.sources.ngsi.entity_head import EntityHead, split_entity_list
from contexture.sources.ngsi.query import EntityQuery

Flavour = Literal["orion", "orion-ld", "scorpio", "stellio", "unknown"]
FLAVOURS: tuple[Flavour, ...] = get_args(Flavour)

SPEAKS_LINKED_DATA: frozenset[Flavour] = frozenset(("orion-ld", "scorpio", "stellio"))

_PAGE_SIZES: dict[Flavour, int] = {"orion-ld": 1000, "scorpio": 1000}
_SAFE_PAGE_SIZE = 100
_LOCAL: dict[Flavour, Mapping[str, str]] = {"orion-ld": {"local": "true"}, "scorpio": {"localOnly": "true"}}


def largest_page(flavour: Flavour) -> int:
    """Returns the page size to begin with: one that the broker grants unless it was configured otherwise."""
    return _PAGE_SIZES.get(flavour, _SAFE_PAGE_SIZE)


def excludes_federated(flavour: Flavour) -> Mapping[str, str]:
    """Returns the parameter that limits a request to what the broker itself stores."""
    return _LOCAL.get(flavour, {})


WALK_DEADLINE_SECONDS = 3600.0
_LONGEST_TOTAL = 18  # digits


@dataclass(frozen=True, slots=True)
class EntityPage:
    """Part of a walk: entities as the broker's own bytes, and the head of each.

    Attributes:
        received_at: when the page arrived, UTC; the clock of batches.
        broker_time: the broker's own clock when it answered, UTC.
    """

    entities: list[bytes]
    heads: tuple[EntityHead, ...]
    received_at: datetime
    broker_time: datetime

    def only(self, indices: tuple[int, ...]) -> EntityPage:
        """Returns the page with these rows alone."""
        if len(indices) == len(self.entities):
            return self
        entities = [self.entities[index] for index in indices]
        return EntityPage(entities, tuple(self.heads[index] for index in indices), self.received_at, self.broker_time)


class Broker(ABC):
    """One service (tenant) of a broker; closed by `with`, or by `close`.

    Args:
        connection: where it is.
        service: the tenant; the default one when empty.
        budget: how often requests to a broker that is away are repeated.
        transport: replaces the network in tests.

    Attributes:
        flavour: which broker it is, where that decides how it is read.
        counts_stretches: whether `count` leaves out what is later than the query's `until`.
        counts_types_apart: whether `count` may count an entity of several types more than once.

    Raises:
        ConfigurationError: the connection cannot be used.
    """

    counts_stretches: ClassVar[bool] = True
    counts_types_apart: ClassVar[bool] = False
    _api_root: ClassVar[str]
    _total_header: ClassVar[str]

    def __init__(
        self,
        connection: BrokerConnection,
        service: str,
        *,
        budget: RetryBudget | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.address = connection.address
        self.service = service
        self.flavour: Flavour = "unknown"
        self._budget = budget or RetryBudget()
        self._transport = HttpTransport(connection, self._budget, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    @abstractmethod
    def probe(self, deadline: float | None = None) -> datetime:
        """Requests what a broker cannot answer without its database, and returns the broker's clock, UTC.

        Raises:
            RetriableError: the broker or its database is ill.
            ConfigurationError: it refuses us, or does not offer this interface.
        """

    @abstractmethod
    def describe(self, query: EntityQuery) -> str:
        """Describes a walk in one line, for the manifest; contains no secret."""

    @abstractmethod
    def count(self, query: EntityQuery) -> int:
        """Returns how many entities a query selects; a hint only, because a broker counts apart from what it shows.

        Raises:
            ContextureError: as `scan`.
        """

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        """Returns the time of the entity at a place of a walk's order; a hint only, because others write meanwhile.

        None where there is no such entity, it has no time, or walks of this broker have no order by time.

        Raises:
            ContextureError: as `scan`.
        """
        del query, place
        return None

    @abstractmethod
    def scan(self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS) -> Iterator[EntityPage]:
        """Yields everything a query selects, page by page; what is there throughout is not missed, whatever changes.

        That holds if of two successive responses one is true. An entity that changes during the walk may come twice,
        in its old and its new content. A walk is complete when the iterator ends; compare what it read with `count`.

        Raises:
            RetriableError: the broker is away or ill, or took too long.
            ConfigurationError: it refuses us or the query, or does not offer this interface.
            RejectedError: one entity alone is too large to be read.
        """

    def scan_by_id(
        self, query: EntityQuery, *, deadline_seconds: float = WALK_DEADLINE_SECONDS
    ) -> Iterator[EntityPage]:
        """Yields what a query selects in another order, to find what a walk passed over; nothing by default.

        Raises:
            ContextureError: as `scan`.
        """
        del query, deadline_seconds
        return iter(())

    def _page_of(self, response: HttpResponse, read_head: Callable[[bytes], EntityHead]) -> EntityPage:
        """Returns the entities of a response, with the head of each as `read_head` returns it."""
        try:
            entities = split_entity_list(response.body)
        except (ValueError, RecursionError) as error:
            # `from None`: a decoder's message may quote the data.
            raise self._no_broker("a JSON list of entities", error) from None
        return EntityPage(entities, tuple(map(read_head, entities)), response.received_at, response.broker_time)

    def _total_of(self, response: HttpResponse) -> int:
        """Returns how many entities the headers of a response count."""
        text = response.headers.get(self._total_header, "")
        if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_TOTAL:
            raise ConfigurationError(
                f"what is at {self.address} does not report how many entities it has",
                next_step=f"configure the proxy before the broker to pass on the header {self._total_header}",
            )
        return int(text)

    def _no_broker(self, expected: str, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"what is at {self.address} does not respond with {expected} ({type(error).__name__})",
            next_step=f"correct the address in the connection: the part before {self._api_root}",
        )
