"""NGSI: entities, the rules they are held to, and the broker that holds them."""

from __future__ import annotations

from contexture.ngsi.broker import Broker, Page
from contexture.ngsi.client import ContextBroker
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.ngsi.notifications import Notification, NotificationError, parse_notification, read_notification
from contexture.ngsi.opening import Dialect, open_broker
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.sighting import Sighting

__all__ = [
    "Broker",
    "BrokerConnection",
    "ContextBroker",
    "Dialect",
    "EntityError",
    "EntityQuery",
    "Notification",
    "NotificationError",
    "Page",
    "ParsedEntity",
    "Sighting",
    "open_broker",
    "parse_entity",
    "parse_notification",
    "read_notification",
]
