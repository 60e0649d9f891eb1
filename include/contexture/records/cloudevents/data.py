"""Data of events: as bytes, and as members of a JSON event.

Bytes that are what their media type states (JSON, or text in its charset) are in JSON events as themselves; all others
as base64, so that none is ever changed.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import NoReturn

import orjson

from contexture.records.cloudevents.record import DATA, DATA_BASE64, NO_DATA, refused
from contexture.records.cloudevents.values import UTF_8, MediaType, media_type

JSON_TYPE = "application/json"
"""What data without a media type are, unless they are bytes (JSON format, 3.1)."""

_LONG_INTEGER = re.compile(rb"\d{19}")
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def data_of(event: Mapping[str, object]) -> object:
    """Returns the data of an event in JSON form: a value, bytes, or `NO_DATA`.

    Raises:
        CloudEventError: it has both members, or one that isn't base64.
    """
    if DATA_BASE64 not in event:
        return event.get(DATA, NO_DATA)
    if DATA in event:
        raise refused(DATA_BASE64, "is there beside `data`", next_step="leave one of them out")
    encoded = event[DATA_BASE64]
    try:
        return b64decode(encoded, validate=True) if isinstance(encoded, str) else _no_base64()
    except (Base64Error, ValueError):
        _no_base64()


def is_json(declared: str | None) -> bool:
    """Returns whether data of this media type are JSON; data without one are."""
    media = media_type(JSON_TYPE if declared is None else declared)
    return media is not None and media.is_json


def as_bytes(data: object, declared: str | None) -> bytes:
    """Returns the bytes of data, as their media type states.

    Args:
        data: bytes, which stay as they are; a JSON value; or a text.
        declared: the event's `datacontenttype`.

    Raises:
        CloudEventError: the data aren't what the media type states, or it names an unknown charset.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    media = media_type(declared or JSON_TYPE)
    if media is None or media.is_json:
        written = json_bytes(data, data)
        return written if media is None or media.charset in {None, UTF_8} else _encoded(written.decode(), media)
    if not isinstance(data, str):
        kind = type(data).__name__
        raise refused(DATA, f"is a {kind}, and the media type is none of JSON", next_step="give a text or bytes")
    return _encoded(data, media)


def json_bytes(value: object, data: object) -> bytes:
    """Returns a value as compact JSON; number literals in an `orjson.Fragment` stay as they are.

    Args:
        value: the data themselves, or all members of an event.
        data: the data in the value.

    Raises:
        CloudEventError: JSON has no such value (NaN, infinity), or it is more than an integer of 64 bits.
    """
    try:
        written = orjson.dumps(value, _decimal_json, _OPTIONS)
    except (TypeError, RecursionError) as error:
        raise refused(DATA, f"cannot be written as JSON ({error})") from error
    # orjson writes null for NaN and infinity. From the right it is found in half the time.
    if written.rfind(b"null") >= 0 and _holds_nan(data):
        raise refused(DATA, "holds NaN or infinity, which JSON does not know")
    return written


def as_members(raw: bytes, declared: str | None) -> dict[str, object]:
    """Returns the members that bytes are in a JSON event, as Python values."""
    media = media_type(declared) if declared is not None else None
    if media is None:
        return _base64(raw)
    try:
        if media.is_json:
            return {DATA: _parse(_utf_8(raw, media))}
        if media.is_text and (text := _text(raw, media)) is not None:
            return {DATA: text}
    except (ValueError, LookupError):
        pass
    return _base64(raw)


def json_members(data: object, declared: str | None) -> dict[str, object]:
    """Returns the members that data are in a JSON event, ready to be written; the JSON in bytes is kept as it is.

    Raises:
        CloudEventError: as `as_bytes`.
    """
    if data is NO_DATA:
        return {}
    if isinstance(data, bytes | bytearray | memoryview):
        raw = bytes(data)
        members = as_members(raw, declared)
        return {DATA: _fragment(raw, declared)} if DATA in members and is_json(declared) else members
    if not is_json(declared) and not isinstance(data, str):
        as_bytes(data, declared)
    return {DATA: data}


def _parse(raw: bytes) -> object:
    """Returns the value of JSON, with integers of any length; floating-point numbers as Python has them.

    Raises:
        ValueError: it isn't JSON, or has a number that no double can be.
    """
    value: object = orjson.loads(raw)
    if not _LONG_INTEGER.search(raw):
        return value
    try:
        # orjson reads integers beyond 64 bits as floats; it has checked everything else.
        return json.loads(raw)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _decimal_json(value: object) -> orjson.Fragment:
    """Returns what orjson doesn't know and JSON has: decimal numbers, with all their digits."""
    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(str(value))
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _no_base64() -> NoReturn:
    raise refused(DATA_BASE64, "is not base64 (RFC 4648, 4)")


def _base64(raw: bytes) -> dict[str, object]:
    return {DATA_BASE64: b64encode(raw).decode()}


def _fragment(raw: bytes, declared: str | None) -> orjson.Fragment:
    media = media_type(declared or JSON_TYPE)
    return orjson.Fragment(raw if media is None else _utf_8(raw, media))


def _utf_8(raw: bytes, media: MediaType) -> bytes:
    return raw if media.charset in {None, UTF_8} else raw.decode(media.codec).encode()


def _text(raw: bytes, media: MediaType) -> str | None:
    """Returns the text; None where other bytes than these would be written for it."""
    text = raw.decode(media.codec)
    return text if text.encode(media.codec) == raw else None


def _encoded(text: str, media: MediaType) -> bytes:
    try:
        return text.encode(media.codec)
    except LookupError as error:
        raise refused("datacontenttype", "names a charset that is not known", next_step="use UTF-8") from error
    except UnicodeError as error:
        raise refused(DATA, "holds characters that its charset lacks", next_step="use UTF-8") from error


def _holds_nan(data: object) -> bool:
    left = [data]
    while left:
        item = left.pop()
        if isinstance(item, float):
            if not isfinite(item):
                return True
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list | tuple):
            left.extend(item)
    return False
