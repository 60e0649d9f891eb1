"""Events to Kafka records and back, in both content modes (Kafka protocol binding 1.0.3, 3).

Nothing is repaired and nothing is made up: an event without an id is refused, not given one. Decoding is liberal where
the binding allows it: in the case of header names, and in which header has the media type.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import orjson

from contexture.errors import ConfigurationError
from contexture.records.cloudevents.data import JSON_TYPE, as_bytes, as_members, data_of, json_bytes, json_members
from contexture.records.cloudevents.record import (
    CONTENT_TYPE,
    DATA,
    DATA_MEMBERS,
    NO_DATA,
    PREFIX,
    REQUIRED,
    STRUCTURED_JSON,
    Event,
    KeyMapper,
    Mode,
    Record,
    header_name,
    refused,
)
from contexture.records.cloudevents.values import (
    CORE,
    MediaType,
    content_type_of,
    is_structured,
    json_of,
    media_type,
    text_of,
)

Key = str | bytes | None
STRUCTURED_HEADER: Final = (CONTENT_TYPE, STRUCTURED_JSON.encode())


def encode(event: Event, *, mode: Mode, key: Key = None, key_mapper: KeyMapper | None = None) -> Record:
    """Returns the Kafka record of an event.

    Args:
        event: a mapping as in the CloudEvents JSON format: attributes by name, and `data` or `data_base64`. Without
            either it has no data, and in binary mode the record is a tombstone; `data: None` is JSON's null.
            Attributes may also be bytes or times with a zone; `data` may be bytes, which are taken as they are. An
            attribute that is None is not set.
        mode: `binary` (attributes in headers, data as the value) or `structured` (everything in the value, as JSON).
        key: the record's key; text is written as UTF-8.
        key_mapper: returns the key of an event, such as `partition_key`; where it returns None, `key` counts. It can't
            change the event.

    Raises:
        CloudEventError: the event breaks the specification; the error names the attribute.
        ConfigurationError: there is no such mode on Kafka.

    >>> encode({"specversion": "1.0", "id": "1", "source": "/a", "type": "b"}, mode="binary", key="car1")
    ... # doctest: +NORMALIZE_WHITESPACE
    Record(headers=[('ce_specversion', b'1.0'), ('ce_id', b'1'), ('ce_source', b'/a'), ('ce_type', b'b')],
           value=None, key=b'car1')
    """
    write = _MODES.get(mode)
    if write is None:
        raise no_such_mode(mode)
    if not isinstance(event, Mapping):
        raise refused("event", f"is a {type(event).__name__}", next_step="give a mapping of attributes")
    require(event)
    headers, value, _ = write(event)
    return Record(headers, value, _key(event, key, key_mapper))


def partition_key(event: Event) -> Key:
    """Returns the extension `partitionkey`, which stays in the event (binding, 3.1); a key mapper."""
    key = event.get("partitionkey")
    return key if isinstance(key, str) else None


def key_bytes(key: Key) -> bytes | None:
    """Returns a key as Kafka receives it.

    Raises:
        CloudEventError: it is neither text nor bytes.
    """
    if key is None or isinstance(key, bytes):
        return key
    if not isinstance(key, str):
        raise refused("key", f"is a {type(key).__name__}", next_step="give text, bytes, or None")
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise refused("key", "holds an incomplete character") from error


def require(event: Mapping[str, object]) -> None:
    """Checks that an event has the attributes that every event has."""
    for name in REQUIRED:
        if event.get(name) is None:
            raise refused(name, "is missing")


def attribute_text(name: str, value: object) -> str:
    """Returns the text of any attribute, checked."""
    check = CORE.get(name)
    return text_of(name, value) if check is None else check(value)


def attribute_json(name: str, value: object) -> str | int:
    """Returns the JSON value of any attribute, checked."""
    check = CORE.get(name)
    return json_of(name, value) if check is None else check(value)


def no_such_mode(mode: object) -> ConfigurationError:
    """Returns the error for a content mode that Kafka hasn't got."""
    return ConfigurationError(
        f"the CloudEvents binding for Kafka has no content mode {str(mode)[:40]!r}",
        next_step="use `binary` or `structured`; the binding has no batches: send one record for each event",
    )


def _binary(event: Event) -> Record:
    headers = []
    for name, value in event.items():
        if value is None or name in DATA_MEMBERS:
            continue
        text = attribute_text(name, value)
        if name == "datacontenttype":
            headers.append((CONTENT_TYPE, content_type_of(text).encode()))
        else:
            headers.append((header_name(name), text.encode()))
    data = data_of(event)
    if data is NO_DATA:
        return Record(headers, None, None)
    declared = _declared(event)
    if declared is None and not isinstance(data, bytes | bytearray | memoryview):
        headers.append((CONTENT_TYPE, JSON_TYPE.encode()))
    return Record(headers, as_bytes(data, declared), None)


def _structured(event: Event) -> Record:
    members: dict[str, object] = {}
    for name, value in event.items():
        if value is not None and name not in DATA_MEMBERS:
            header_name(name)
            members[name] = attribute_json(name, value)
    data = data_of(event)
    # Base64 stays so.
    encoded = {name: event[name] for name in event if name != DATA and name in DATA_MEMBERS}
    members |= encoded or json_members(data, _declared(event))
    return Record([STRUCTURED_HEADER], json_bytes(members, data), None)


def _declared(event: Event) -> str | None:
    declared = event.get("datacontenttype")
    return declared if isinstance(declared, str) else None


def _key(event: Event, key: Key, key_mapper: KeyMapper | None) -> bytes | None:
    mapped = key_mapper(MappingProxyType(dict(event))) if key_mapper is not None else None
    return key_bytes(key if mapped is None else mapped)


_MODES: Final[Mapping[str, Callable[[Event], Record]]] = {"binary": _binary, "structured": _structured}


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
        return _from_structured(declared, value)
    return _from_binary(named, value)


def _named(headers: Headers) -> dict[str, list[bytes]]:
    pairs: Iterable[tuple[str | bytes, Value]] = headers.items() if isinstance(headers, Mapping) else headers or ()
    named: dict[str, list[bytes]] = {}
    for name, value in pairs:
        if value is not None:
            name = name.decode(errors="replace") if isinstance(name, bytes) else name
            named.setdefault(name.lower(), []).append(value.encode() if isinstance(value, str) else bytes(value))
    return named


def _from_binary(named: Mapping[str, list[bytes]], value: bytes | None) -> dict[str, object]:
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
        raise refused(name, "is not UTF-8", next_step=_NOT_OURS) from error


def _from_structured(content_type: str, value: bytes | None) -> dict[str, object]:
    media = media_type(content_type)
    if media is None or media.essence != STRUCTURED_JSON:
        raise refused(
            CONTENT_TYPE,
            "names a format of events that is not read: batches and formats other than JSON are not",
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
        raise refused("value", "is not text in the charset of its content type", next_step=_NOT_OURS) from error


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
        raise refused("value", "is not JSON", next_step=_NOT_OURS) from error
    if not isinstance(event, dict):
        raise refused("value", "is not a JSON object", next_step=_NOT_OURS)
    if len(found) > len(event):
        twice = next(name for name, times in Counter(name for name, _ in found).items() if times > 1)
        raise refused(twice, "is in the event several times", next_step=_NOT_OURS)
    return event
