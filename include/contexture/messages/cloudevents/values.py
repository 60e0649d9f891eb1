"""The type system of CloudEvents: which values an attribute may have, and how each is written."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Final

from contexture.events.text_cache import remembered
from contexture.messages.cloudevents.errors import refused
from contexture.messages.cloudevents.media_types import is_structured, media_type
from contexture.messages.cloudevents.record import SPEC_VERSION
from contexture.messages.cloudevents.timestamps import is_timestamp, timestamp
from contexture.messages.cloudevents.uris import is_absolute_uri, is_uri_reference

Text = Callable[[object], str]

_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_FORBIDDEN = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
_LARGEST, _SMALLEST = 2**31 - 1, -(2**31)
_CACHED = 1024


def text_of(name: str, value: object) -> str:
    """The canonical text of an extension attribute (core, 3.1).

    Raises:
        CloudEventError: the value has none of the types there are, or lies outside of its type.
    """
    if type(value) is str:
        return _checked(name, value)
    if value is True or value is False:
        return "true" if value else "false"
    json = json_of(name, value)
    return json if isinstance(json, str) else str(json)


def json_of(name: str, value: object) -> str | int:
    """The JSON value of an extension attribute (JSON format, 2.2): truth values and integers natively, else a text.

    Raises:
        CloudEventError: as `text_of`.
    """
    if isinstance(value, str):
        return _checked(name, str(value))
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not _SMALLEST <= value <= _LARGEST:
            raise refused(name, "is an integer of more than 32 bits", next_step="send it as text")
        return int(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return _moment(name, value)
    raise refused(name, f"is a {type(value).__name__}, which no attribute can be", next_step="send it as text")


def _checked(name: str, text: str) -> str:
    # For ASCII `isprintable` says exactly that; beyond, it refuses characters that are legal.
    if not (text.isascii() and text.isprintable()) and _FORBIDDEN.search(text):
        raise refused(name, "holds a control character, half of a character, or a noncharacter")
    return text


def _string(name: str) -> Text:
    def check(value: object) -> str:
        if not isinstance(value, str):
            raise refused(name, f"is a {type(value).__name__}, not a text")
        if not value:
            raise refused(name, "is empty")
        return _checked(name, value)

    return check


def _matching(name: str, is_right: Callable[[str], bool], problem: str) -> Text:
    string = _string(name)

    # Sources and media types repeat from event to event.
    @remembered(_CACHED)
    def cached(text: str) -> str:
        if not is_right(text):
            raise refused(name, problem)
        return text

    return lambda value: cached(string(value))


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return _moment("time", value)
    text = _string("time")(value)
    if not is_timestamp(text):
        raise refused("time", "is no RFC 3339 time with an offset")
    return text


def _moment(name: str, moment: datetime) -> str:
    text = timestamp(moment)
    if text is None:
        raise refused(
            name, "is a time without an offset of whole minutes", next_step="give it a time zone, such as UTC"
        )
    return text


def _version(value: object) -> str:
    if value != SPEC_VERSION or not isinstance(value, str):
        raise refused("specversion", f"is not {SPEC_VERSION!r}", next_step=f"write {SPEC_VERSION!r}, as text")
    return value


CORE: Final[dict[str, Text]] = {
    "specversion": _version,
    "id": _string("id"),
    "source": _matching("source", is_uri_reference, "is no URI reference (RFC 3986)"),
    "type": _string("type"),
    "datacontenttype": _matching(
        "datacontenttype", lambda text: media_type(text) is not None, "is no media type (RFC 2046)"
    ),
    "dataschema": _matching("dataschema", is_absolute_uri, "is no absolute URI (RFC 3986, 4.3)"),
    "subject": _string("subject"),
    "time": _time,
    "partitionkey": _string("partitionkey"),
}
"""The attributes with rules of their own: those of the specification, and the extension `partitionkey`."""

PLAIN: Final = frozenset(("id", "type", "subject", "partitionkey"))
"""Those of them that are texts that are not empty, and nothing more."""


def content_type_of(text: str) -> str:
    """The header `content-type` of an event in binary mode.

    Raises:
        CloudEventError: readers would take the record for one in structured mode.
    """
    if is_structured(text):
        raise refused(
            "datacontenttype",
            "begins as a structured record's content type does",
            next_step="send this event in structured mode",
        )
    return text
