"""The one place that chooses how a broker is spoken to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from contexture.ngsi.broker import Broker
from contexture.ngsi.client import ContextBroker
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.entity import EntityForm
from contexture.ngsi.flavour import detect
from contexture.ngsi.linked_data.client import LinkedDataBroker
from contexture.ngsi.linked_data.flavour import FLAVOURS, Flavour
from contexture.ngsi.linked_data.temporal import HistoryBroker
from contexture.ngsi.transport import Patience

if TYPE_CHECKING:
    from contexture.publications.source import Source


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
    def of(cls, source: Source) -> Dialect:
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
    patience: Patience | None = None,
    transport: httpx.BaseTransport | None = None,
) -> Broker:
    """A client of one service of a broker; to be closed.

    An NGSI-LD broker whose flavour isn't given is asked for it first.

    Args:
        connection: where it is.
        service: the tenant; the default one when empty.
        dialect: how it is spoken to; NGSIv2 when None.
        patience: how long to bear with a broker that is away.
        transport: stands in for the network in tests.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: the connection can't be used, or the broker does not take our credentials.
    """
    asked = dialect or Dialect()
    if asked.api == "ngsiv2":
        return ContextBroker(connection, service, patience=patience, transport=transport)
    return LinkedDataBroker(
        connection,
        service,
        context=asked.context,
        flavour=asked.flavour or detect(connection, patience=patience, transport=transport),
        patience=patience,
        transport=transport,
    )


def open_history(
    connection: BrokerConnection, service: str, dialect: Dialect, *, patience: Patience | None = None
) -> HistoryBroker:
    """A client of the history of one tenant of an NGSI-LD broker; arguments and errors as `open_broker`."""
    flavour = dialect.flavour or detect(connection, patience=patience)
    return HistoryBroker(connection, service, context=dialect.context, flavour=flavour, patience=patience)
