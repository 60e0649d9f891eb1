"""Kafka records to events, in the JSON form of an event whatever the content mode.

They are liberal where the binding allows it (case of header names, which header has the media type), and strict about
what an event is: one that lacks its id is refused, and gets no new one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import orjson

from contexture.records.cloudevents.data import as_members, data_of
from contexture.records.cloudevents.encoding import attribute_json, attribute_text, require
from contexture.records.cloudevents.record import (
    CONTENT_TYPE,
    DATA,
    DATA_MEMBERS,
    PREFIX,
    STRUCTURED_JSON,
    header_name,
    refused,
)
from contexture.records.cloudevents.values import MediaType, is_structured, media_type

Value = bytes | str | None
Headers = Mapping[str, Value] | Iterable[tuple[str | bytes, Value]] | None

_NOT_OURS = "leave the record alone: it may not be a CloudEvent"
# The headers of a media type, the first of them counting: that of the binding, and those of Spring and older Java.
_MEDIA_TYPE_HEADERS = (CONTENT_TYPE, f"{PREFIX}datacontenttype", "contenttype")


def decode(headers: Headers, key: bytes | None, value: bytes | None) -> dict[str, object]:
    """Returns the event in a Kafka record, as in the CloudEvents JSON format; `encode` takes it.

    A header `content-type` that begins with `application/cloudevents`, in any case, means structured mode; all else is
    binary. Data of a binary record are `data` where their media type is JSON or text and they are that, or else
    `data_base64`; a record without a value has neither. Attributes of a binary record are all texts.

    Args:
        headers: of the record, as pairs or as a mapping; a header whose value is None counts as absent.
        key: of the record. It is no part of the event, and its `partitionkey` may be another one.
        value: of the record; None for a tombstone.

    Raises:
        CloudEventError: the record is no event, or one that breaks the specification; the error names the attribute.
    """
    named = _named(headers)
    content_type = next((named[name][0] for name in (CONTENT_TYPE, "contenttype") if name in named), b"")
    declared = _text("datacontenttype", content_type)
    if is_structured(declared):
        if len(named.get(CONTENT_TYPE, ())) > 1:
            raise refused("datacontenttype", "is in several headers", next_step=_NOT_OURS)
        return _structured(declared, value)
    return _binary(named, value)


def _named(headers: Headers) -> dict[str, list[bytes]]:
    pairs: Iterable[tuple[str | bytes, Value]] = headers.items() if isinstance(headers, Mapping) else headers or ()
    named: dict[str, list[bytes]] = {}
    for name, value in pairs:
        if value is not None:
            name = name.decode(errors="replace") if isinstance(name, bytes) else name
            named.setdefault(name.lower(), []).append(value.encode() if isinstance(value, str) else bytes(value))
    return named


def _binary(named: Mapping[str, list[bytes]], value: bytes | None) -> dict[str, object]:
    event: dict[str, object] = {}
    for label, values in named.items():
        if not label.startswith(PREFIX) or label in _MEDIA_TYPE_HEADERS:
            continue
        name = label.removeprefix(PREFIX)
        header_name(name)
        event[name] = attribute_text(name, _text(name, _only(name, values)))
    require(event)
    declared = _media_type(named)
    if declared is not None:
        event["datacontenttype"] = attribute_text("datacontenttype", declared)
    return event if value is None else event | as_members(bytes(value), declared)


def _media_type(named: Mapping[str, list[bytes]]) -> str | None:
    found = {name: _only("datacontenttype", named[name]) for name in _MEDIA_TYPE_HEADERS if name in named}
    if len({found[name] for name in _MEDIA_TYPE_HEADERS[:2] if name in found}) > 1:
        raise refused("datacontenttype", "differs between its headers", next_step=_NOT_OURS)
    return _text("datacontenttype", next(iter(found.values()))) if found else None


def _only(name: str, values: list[bytes]) -> bytes:
    if len(values) > 1:
        raise refused(name, "is in several headers", next_step=_NOT_OURS)
    return values[0]


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise refused(name, "isn't UTF-8", next_step=_NOT_OURS) from error


def _structured(content_type: str, value: bytes | None) -> dict[str, object]:
    media = media_type(content_type)
    if media is None or media.essence != STRUCTURED_JSON:
        raise refused(
            CONTENT_TYPE,
            "names a format of events that isn't read: batches and formats other than JSON aren't",
            next_step="forward the record as it is, or ask its producer for application/cloudevents+json",
        )
    members = _members(_utf_8(value, media))
    event = {name: member for name, member in members.items() if member is not None or name == DATA}
    require(event)
    for name, member in event.items():
        if name not in DATA_MEMBERS:
            header_name(name)
            event[name] = attribute_json(name, member)
    data_of(event)
    return event


def _utf_8(value: bytes | None, media: MediaType) -> bytes:
    if value is None:
        raise refused("value", "is missing, and a structured record holds its event there", next_step=_NOT_OURS)
    if media.charset is None:
        return bytes(value)
    try:
        return bytes(value).decode(media.codec).encode()
    except (LookupError, UnicodeError) as error:
        raise refused("value", "isn't text in the charset of its content type", next_step=_NOT_OURS) from error


def _members(raw: bytes) -> dict[str, object]:
    """Returns the members of a JSON object, each of which occurs once."""
    found: list[tuple[str, object]] = []

    def take(pairs: list[tuple[str, object]]) -> dict[str, object]:
        # The outermost object is the last that is complete.
        found[:] = pairs
        return dict(pairs)

    try:
        # orjson refuses what Python's parser accepts: NaN, halves of characters, numbers beyond a double.
        orjson.loads(raw)
        event = json.loads(raw, object_pairs_hook=take)
    except (ValueError, RecursionError) as error:
        raise refused("value", "isn't JSON", next_step=_NOT_OURS) from error
    if not isinstance(event, dict):
        raise refused("value", "isn't a JSON object", next_step=_NOT_OURS)
    if len(found) > len(event):
        twice = next(name for name, times in Counter(name for name, _ in found).items() if times > 1)
        raise refused(twice, "is in the event several times", next_step=_NOT_OURS)
    return event
