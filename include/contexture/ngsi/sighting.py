"""The few members of an entity that a pull needs itself: whose it is and when it changed. Nothing is judged here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from contexture.ngsi.entity import broker_time, is_users
from contexture.ngsi.query import KeysetField


class _Head(msgspec.Struct):
    id: Any = None
    type: Any = None
    servicePath: Any = None  # noqa: N815  # the name in the JSON
    dateCreated: Any = None  # noqa: N815  # the name in the JSON
    dateModified: Any = None  # noqa: N815  # the name in the JSON


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True)
class Sighting:
    """An entity as it went by. A member that is absent, or isn't what it should be, is None.

    Attributes:
        id, type: a number or Boolean in its text form, so that the entity can be quarantined under it.
        created, modified: the broker's times as it wrote them.
    """

    path: str | None
    id: str | None
    type: str | None
    created: str | None
    modified: str | None

    def time(self, field: KeysetField) -> str | None:
        """The time that a walk along `field` goes by."""
        return self.created if field == "dateCreated" else self.modified

    @property
    def identity(self) -> tuple[str | None, str | None, str | None]:
        """What tells it from others in its service."""
        return self.path, self.id, self.type


def sight(body: bytes, known_path: str | None) -> Sighting:
    """Reads an entity's head, whatever else is wrong with it.

    A user's attribute that hides a builtin is never taken for it: the member is None then.

    Args:
        body: the entity as JSON, of a page that was requested with `contexture.ngsi.query.METADATA`.
        known_path: the service path asked for, where it can be only one; otherwise the entity has to say.
    """
    try:
        head = _HEAD.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Sighting(known_path, None, None, None, None)
    shown = _value(head.servicePath, "Text")
    path = known_path or (shown if shown is not None and shown.startswith("/") else None)
    return Sighting(path, _name(head.id), _name(head.type), _time(head.dateCreated), _time(head.dateModified))


def moment(text: str | None) -> datetime | None:
    """The moment that a broker's time says, None when it says none (or one no calendar of ours holds)."""
    try:
        return broker_time(text)
    except OverflowError:
        return None


def _time(attribute: object) -> str | None:
    text = _value(attribute, "DateTime")
    return text if moment(text) is not None else None


def _value(attribute: object, kind: str) -> str | None:
    if not isinstance(attribute, dict):
        return _text(attribute)
    return None if is_users(attribute, kind) else _text(attribute.get("value"))


def _name(value: object) -> str | None:
    if isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    return _text(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
