"""Notifications of a context broker: the entities of its HTTP request to a subscriber, in each of the known forms."""

from __future__ import annotations

from contexture.sources.ngsi.notifications.notification import (
    Form,
    Notification,
    NotificationError,
    NotifiedEntity,
    media_type_of,
    notified_form,
)
from contexture.sources.ngsi.notifications.parsing import MAXIMUM_BYTES, parse_notification, read_notification

__all__ = [
    "MAXIMUM_BYTES",
    "Form",
    "Notification",
    "NotificationError",
    "NotifiedEntity",
    "media_type_of",
    "notified_form",
    "parse_notification",
    "read_notification",
]
