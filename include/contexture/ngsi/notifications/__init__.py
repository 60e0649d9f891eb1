"""Notifications of a context broker: what its HTTP request to a subscriber says, in any of the forms brokers send."""

from __future__ import annotations

from contexture.ngsi.notifications.errors import NotificationError
from contexture.ngsi.notifications.media_types import media_type_of, notified_form
from contexture.ngsi.notifications.notification import Form, Notification, NotifiedEntity
from contexture.ngsi.notifications.reading import MAXIMUM_BYTES, parse_notification, read_notification

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
