"""NGSI: entities, the rules for them, and clients of context brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.sources.http.connection import BrokerConnection
from contexture.sources.ngsi.broker import Broker, EntityPage
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.sources.ngsi.entity_head import EntityHead
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.notifications import Notification, NotificationError, parse_notification, read_notification
from contexture.sources.ngsi.query import EntityQuery

if TYPE_CHECKING:
    from contexture.sources.ngsi.ngsi_ld import NgsiLdClient

__all__ = [
    "Broker",
    "BrokerConnection",
    "Dialect",
    "EntityError",
    "EntityHead",
    "EntityPage",
    "EntityQuery",
    "NgsiLdClient",
    "NgsiV2Client",
    "Notification",
    "NotificationError",
    "ParsedEntity",
    "open_broker",
    "parse_entity",
    "parse_notification",
    "read_notification",
]


def __getattr__(name: str) -> object:
    # Loaded on use: anyone who only parses entities needs no HTTP client.
    if name != "NgsiLdClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contexture.sources.ngsi.ngsi_ld import NgsiLdClient

    return NgsiLdClient
