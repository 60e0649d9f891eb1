"""NGSI: entities, the rules they are held to, and the broker that holds them."""

from __future__ import annotations

from contexture.ngsi.client import ContextBroker, Page
from contexture.ngsi.connection import BrokerConnection
from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.ngsi.notifications import Notification, NotificationError, parse_notification, read_notification
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.sighting import Sighting

__all__ = [
    "BrokerConnection",
    "ContextBroker",
    "EntityError",
    "EntityQuery",
    "Notification",
    "NotificationError",
    "Page",
    "ParsedEntity",
    "Sighting",
    "parse_entity",
    "parse_notification",
    "read_notification",
]
