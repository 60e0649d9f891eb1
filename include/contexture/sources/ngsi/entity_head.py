"""The entities of a response: a JSON list split into its items as the broker's own bytes, with the identity of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from contexture.sources.ngsi.entity import SERVICE_PATH, broker_time, is_users, system_time, type_name
from contexture.sources.ngsi.query import KeysetField


class _Head(msgspec.Struct):
    id: Any = None
    type: Any = None
    servicePath: Any = None  # noqa: N815  # the name in the JSON
    dateCreated: Any = None  # noqa: N815  # the name in the JSON
    dateModified: Any = None  # noqa: N815  # the name in the JSON


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True)
class EntityHead:
    """The identity and times of an entity in a response. A member that is absent or malformed is None.

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
        """Returns the time by which a walk along `field` is ordered."""
        return self.created if field == "dateCreated" else self.modified

    @property
    def identity(self) -> tuple[str | None, str | None, str | None]:
        """What distinguishes it from others in its service."""
        return self.path, self.id, self.type


def read_entity_head(body: bytes, known_path: str | None) -> EntityHead:
    """Reads an entity's head, whatever else is wrong with it.

    A user's attribute that hides a builtin is never taken for it: the member is None then.

    Args:
        body: the entity as JSON, of a page that was requested with `contexture.sources.ngsi.query.METADATA`.
        known_path: the requested service path, where it can be only one; otherwise the entity has to show it.
    """
    try:
        head = _HEAD.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return EntityHead(known_path, None, None, None, None)
    shown = _value(head.servicePath, "Text")
    path = known_path or (shown if shown is not None and shown.startswith("/") else None)
    return EntityHead(path, _name(head.id), _name(head.type), _time(head.dateCreated), _time(head.dateModified))


def moment(text: str | None) -> datetime | None:
    """Returns the moment of a broker's time; None where it is none."""
    return broker_time(text)


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


class _LinkedDataHead(msgspec.Struct):
    id: Any = None
    type: Any = None
    createdAt: Any = None  # noqa: N815  # the name in the JSON
    modifiedAt: Any = None  # noqa: N815  # the name in the JSON


_LINKED_DATA_HEAD = msgspec.json.Decoder(_LinkedDataHead)


def read_linked_data_head(body: bytes) -> EntityHead:
    """Reads an entity's head, whatever else is wrong with it; it has times where `options=sysAttrs` was requested."""
    try:
        head = _LINKED_DATA_HEAD.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return EntityHead(SERVICE_PATH, None, None, None, None)
    entity_id = head.id if isinstance(head.id, str) else None
    return EntityHead(
        SERVICE_PATH,
        entity_id,
        type_name(head.type),
        _linked_data_time(head.createdAt),
        _linked_data_time(head.modifiedAt),
    )


def _linked_data_time(value: object) -> str | None:
    text = system_time(value)
    return text if moment(text) is not None else None


_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_BLANK = re.compile(r"[ \t\n\r]*")
# Only the ends of items are needed: numbers of any length, and any content of texts, are left to the rules.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


def split_entity_list(body: bytes) -> list[bytes]:
    """Returns the items of a JSON list as they were written, also those with what JSON forbids (half a character, NaN).

    The rules refuse such an item; the others of its page are not affected.

    Raises:
        ValueError: it is no JSON list.
        RecursionError: it is nested too deeply.
    """
    try:
        return [bytes(item) for item in _LIST.decode(body)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Byte by byte, so that what is no UTF-8 stays where it was.
        text = body.decode("utf-8", "surrogateescape")
        return [item.encode("utf-8", "surrogateescape") for item in _items(text)]


def _items(text: str) -> Iterator[str]:
    at = _after(text, _next(text, 0), "[")
    if text[at : at + 1] != "]":
        while True:
            _, end = _SCANNER.raw_decode(text, at)
            yield text[at:end]
            at = _next(text, end)
            if text[at : at + 1] == "]":
                break
            at = _after(text, at, ",")
    if _next(text, at + 1) != len(text):
        raise ValueError("something follows the list")


def _after(text: str, at: int, expected: str) -> int:
    if text[at : at + 1] != expected:
        raise ValueError(f"no {expected} at character {at}")
    return _next(text, at + 1)


def _next(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
