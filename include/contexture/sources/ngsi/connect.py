"""Chooses the client of a broker by its dialect; the only place that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import msgspec

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.errors import TokenRefusedError
from contexture.sources.http.transport import HttpTransport, RetryBudget
from contexture.sources.ngsi.broker import FLAVOURS, Broker, Flavour
from contexture.sources.ngsi.entity import EntityForm
from contexture.sources.ngsi.history import NgsiLdHistoryClient
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client

if TYPE_CHECKING:
    from contexture.publications.source import NgsiSource

_OWN_RESOURCES: tuple[tuple[str, bytes, Flavour], ...] = (
    ("/version", b'"orionld version"', "orion-ld"),
    ("/version", b'"orion"', "orion"),
    ("/scorpio/v1/info/health", b"", "scorpio"),
    ("/actuator/info", b"stellio", "stellio"),
)


def detect(
    connection: BrokerConnection, *, budget: RetryBudget | None = None, transport: httpx.BaseTransport | None = None
) -> Flavour:
    """Returns the flavour of the broker at a connection; unknown where a proxy hides the resources that show it.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: it does not accept our credentials.
    """
    network = HttpTransport(connection, budget or RetryBudget(), transport)
    try:
        for path, mark, flavour in _OWN_RESOURCES:
            if _has_mark(network, path, mark):
                return flavour
    finally:
        network.close()
    return "unknown"


def _has_mark(network: HttpTransport, path: str, mark: bytes) -> bool:
    try:
        body = network.get(path, {"accept": "application/json"}, {}).body
        msgspec.json.decode(body)
    except TokenRefusedError:
        raise
    except (ConfigurationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return mark in body


@dataclass(frozen=True, slots=True)
class Dialect:
    """The interface and the habits by which a broker is read.

    Attributes:
        api: the interface; also the form its entities have.
        flavour: whose habits; detected when None.
        context: URL of the @context that NGSI-LD names are written by.
    """

    api: EntityForm = "ngsiv2"
    flavour: Flavour | None = None
    context: str = ""

    @classmethod
    def of(cls, source: NgsiSource) -> Dialect:
        return cls(source.api, flavour_named(source.flavour), source.context or "")


def flavour_named(text: str) -> Flavour | None:
    """Returns the flavour of a publication's `source.flavour`: None for `auto`, `unknown` for other words."""
    if text == "auto":
        return None
    return next((flavour for flavour in FLAVOURS if flavour == text), "unknown")


def open_broker(
    connection: BrokerConnection,
    service: str,
    dialect: Dialect | None = None,
    *,
    budget: RetryBudget | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Broker:
    """Returns a client of one service of a broker; the caller closes it. Other arguments as `Broker`.

    Args:
        dialect: how it is read; NGSIv2 when None. An NGSI-LD broker's flavour is detected first, unless it is set.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: the connection cannot be used, or the broker does not accept our credentials.
    """
    chosen = dialect or Dialect()
    if chosen.api == "ngsiv2":
        return NgsiV2Client(connection, service, budget=budget, transport=transport)
    return NgsiLdClient(
        connection,
        service,
        context=chosen.context,
        flavour=chosen.flavour or detect(connection, budget=budget, transport=transport),
        budget=budget,
        transport=transport,
    )


def open_history(
    connection: BrokerConnection, service: str, dialect: Dialect, *, budget: RetryBudget | None = None
) -> NgsiLdHistoryClient:
    """Returns a client of the history of one tenant of an NGSI-LD broker; arguments and errors as `open_broker`."""
    flavour = dialect.flavour or detect(connection, budget=budget)
    return NgsiLdHistoryClient(connection, service, context=dialect.context, flavour=flavour, budget=budget)
