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
    """The broker at a connection; unknown where a proxy hides the resources that show.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: it does not take our credentials.
    """
    network = HttpTransport(connection, budget or RetryBudget(), transport)
    try:
        for path, mark, flavour in _OWN_RESOURCES:
            if _says(network, path, mark):
                return flavour
    finally:
        network.close()
    return "unknown"


def _says(network: HttpTransport, path: str, mark: bytes) -> bool:
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
    """How a broker is spoken to.

    Attributes:
        api: the interface; also the form its entities have.
        flavour: whose habits; the broker is asked when None.
        context: URL of the @context that NGSI-LD names are written by.
    """

    api: EntityForm = "ngsiv2"
    flavour: Flavour | None = None
    context: str = ""

    @classmethod
    def of(cls, source: NgsiSource) -> Dialect:
        """How a publication says that its source is spoken to."""
        return cls(source.api, flavour_named(source.flavour), source.context or "")


def flavour_named(text: str) -> Flavour | None:
    """What a publication's `source.flavour` means: None for `auto`; a broker of no known habits for other words."""
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
    """A client of one service of a broker; to be closed.

    An NGSI-LD broker whose flavour isn't given is asked for it first.

    Args:
        connection: where it is.
        service: the tenant; the default one when empty.
        dialect: how it is spoken to; NGSIv2 when None.
        budget: how long to bear with a broker that is away.
        transport: stands in for the network in tests.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: the connection can't be used, or the broker does not take our credentials.
    """
    asked = dialect or Dialect()
    if asked.api == "ngsiv2":
        return NgsiV2Client(connection, service, budget=budget, transport=transport)
    return NgsiLdClient(
        connection,
        service,
        context=asked.context,
        flavour=asked.flavour or detect(connection, budget=budget, transport=transport),
        budget=budget,
        transport=transport,
    )


def open_history(
    connection: BrokerConnection, service: str, dialect: Dialect, *, budget: RetryBudget | None = None
) -> NgsiLdHistoryClient:
    """A client of the history of one tenant of an NGSI-LD broker; arguments and errors as `open_broker`."""
    flavour = dialect.flavour or detect(connection, budget=budget)
    return NgsiLdHistoryClient(connection, service, context=dialect.context, flavour=flavour, budget=budget)
