"""Events to Kafka records, in both content modes (Kafka protocol binding 1.0.3, 3).

Nothing is repaired and nothing is made up: an event without an id is refused, not given one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from contexture.errors import ConfigurationError
from contexture.records.cloudevents.data import JSON_TYPE, as_bytes, data_of, json_bytes, json_members
from contexture.records.cloudevents.record import (
    CONTENT_TYPE,
    DATA,
    DATA_MEMBERS,
    NO_DATA,
    REQUIRED,
    STRUCTURED_JSON,
    Event,
    KeyMapper,
    Mode,
    Record,
    header_name,
    refused,
)
from contexture.records.cloudevents.values import CORE, content_type_of, json_of, text_of

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
        raise refused("key", "holds half of a character") from error


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
