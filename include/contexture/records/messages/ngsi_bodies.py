"""The body formats `ngsiv1` and `ngsiv2`, and the lines that Cygnus writes.

A line is `{"headers":[service,path,timestamp],"body":{attributes,type,isPattern,id}}`; only an event that came as
NGSIv1 has `isPattern`. Three of upstream's corruptions are corrected: each line carries its own service path, service
and path are JSON-escaped, and a line for one attribute holds that attribute. Attributes are in the order received,
where upstream has Java's hash order.

NGSIv1 is `{"id":…,"type":…,"isPattern":"false","attributes":[{"name":…,"type":…,"value":…,"metadatas":[…]}]}`, without
a wrapper `contextElement` and a `statusCode` because a record is one entity without status. Values keep their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson

from contexture.records.messages.content import CORRECT_ENTITY, MessageError, missing_attribute_error, write_json

_MEMBERS = ("name", "type", "value", "metadatas")
_ABSENT: dict[str, object] = {}

Attributes = list[dict[str, object]]


def attributes_of(entity: Mapping[str, object], attribute: str | None = None) -> Attributes:
    """Returns the attributes of an entity in NGSIv2's normalized form as NGSIv1 lists them, in the order received.

    Args:
        entity: id, type and attributes.
        attribute: the only attribute to list; all of them when None.

    Raises:
        MessageError: the attribute isn't there, or one isn't an object.
    """
    if attribute is None:
        return [_attribute(name, member) for name, member in entity.items() if name not in ("id", "type")]
    if attribute not in entity:
        raise missing_attribute_error(attribute)
    return [_attribute(attribute, entity[attribute])]


def received_attributes(element: Mapping[str, object], attribute: str | None = None) -> Attributes:
    """Returns the attributes of a context element as it was received, without members that NGSIv1 doesn't know.

    Args:
        element: a context element.
        attribute: the only attribute to list, with all its entries; all of them when None.

    Raises:
        MessageError: the attribute isn't there, or its list isn't one of objects.
    """
    listed = element.get("attributes")
    attributes = [_received(item) for item in (listed if isinstance(listed, Iterable) else ())]
    if attribute is None:
        return attributes
    chosen = [item for item in attributes if item.get("name") == attribute]
    if not chosen:
        raise missing_attribute_error(attribute)
    return chosen


def _received(attribute: object) -> dict[str, object]:
    if not isinstance(attribute, Mapping):
        raise MessageError("an attribute of the context element is not an object", next_step=CORRECT_ENTITY)
    known = {name: attribute[name] for name in _MEMBERS if name in attribute}
    known.setdefault("metadatas", [])
    return known


def _attribute(name: str, attribute: object) -> dict[str, object]:
    if not isinstance(attribute, dict):
        raise MessageError("an attribute is not an object with a value", next_step=CORRECT_ENTITY, attribute=name[:100])
    return {
        "name": name,
        "type": attribute.get("type"),
        "value": attribute.get("value"),
        "metadatas": _metadatas(attribute.get("metadata", _ABSENT)),
    }


def _metadatas(metadata: object) -> list[dict[str, object]] | None:
    if metadata == _ABSENT:
        return []
    if isinstance(metadata, dict):
        return [_metadata(name, member) for name, member in metadata.items()]
    if metadata is None:
        return None
    raise MessageError("the metadata of an attribute is not an object", next_step=CORRECT_ENTITY)


def _metadata(name: str, metadata: object) -> dict[str, object]:
    if not isinstance(metadata, dict):
        raise MessageError("a metadata is not an object with a value", next_step=CORRECT_ENTITY, metadata=name[:100])
    return {"name": name, "type": metadata.get("type"), "value": metadata.get("value")}


# JSON has none of these characters outside a string (numbers, literals and punctuation have none of them), and no UTF-8
# sequence contains another, so replacing them in the finished text changes strings only.
_ESCAPES = tuple(
    (character.encode(), f"\\u{ord(character):04x}".encode())
    for character in ("<", ">", "&", "=", "'", "\u2028", "\u2029")
)

# The first bytes of the special characters: deleting these shows in one step whether a text has any of them.
_FIRST_BYTES = b"<>&='\xe2"


def dumps(value: object) -> bytes:
    """Writes compact JSON without members that are null and with `< > & = '`, U+2028 and U+2029 escaped in strings.

    Nulls inside arrays stay. Number literals in an `orjson.Fragment` stay as they are.

    Raises:
        TypeError: the value can't be written as UTF-8 JSON.
    """
    text = orjson.dumps(value)
    if b"null" in text:
        text = orjson.dumps(without_null_members(value))
    return text if len(text.translate(None, _FIRST_BYTES)) == len(text) else _escaped(text)


def _escaped(text: bytes) -> bytes:
    for special, escape in _ESCAPES:
        text = text.replace(special, escape)
    return text


def without_null_members(value: object) -> object:
    """Returns the value without the object members that are null, at any depth; nulls inside arrays stay."""
    if isinstance(value, Mapping):
        return {name: without_null_members(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_null_members(item) for item in value]
    return value


_CACHED_HEADERS = 4096


def line(
    *,
    service: str,
    service_path: str,
    timestamp_ms: int,
    entity: Mapping[str, object],
    attribute: str | None = None,
    context_element: Mapping[str, object] | None = None,
) -> bytes:
    """Returns the line of one event, without a newline.

    Args:
        service: its service, for the header `fiware-service`.
        service_path: its own service path, for the header `fiware-servicePath`.
        timestamp_ms: when it was received, milliseconds since 1970.
        entity: id, type and attributes in NGSIv2's normalized form.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.
        context_element: the NGSIv1 context element, where the event came as one; it is written instead of the entity.

    Raises:
        MessageError: the attribute isn't there or isn't an object, or the text isn't UTF-8.
    """
    content = _body(entity, attribute) if context_element is None else _received_line(context_element, attribute)
    body = write_json(content, dumps)
    return b'%b%d}],"body":%b}' % (_headers(service, service_path), timestamp_ms, body)


def join(lines: Iterable[bytes]) -> bytes:
    r"""Returns the value of a sub-batch's record: its lines joined by `\n`, none at the end."""
    return b"\n".join(lines)


# Upstream pastes both as they are; only what JSON itself needs is escaped here, so all its readable lines are the same.
@lru_cache(_CACHED_HEADERS)
def _headers(service: str, service_path: str) -> bytes:
    return b'{"headers":[{"fiware-service":%b},{"fiware-servicePath":%b},{"timestamp":' % (
        write_json(service),
        write_json(service_path),
    )


def _body(entity: Mapping[str, object], attribute: str | None) -> dict[str, object]:
    return {"attributes": attributes_of(entity, attribute), "type": entity.get("type"), "id": entity.get("id")}


def _received_line(element: Mapping[str, object], attribute: str | None) -> dict[str, object]:
    attributes = received_attributes(element, attribute)
    return {"attributes": attributes, **{name: element.get(name) for name in ("type", "isPattern", "id")}}


_NO_PATTERN = "false"


def ngsiv1_body(
    entity: Mapping[str, object],
    attribute: str | None = None,
    context_element: Mapping[str, object] | None = None,
) -> bytes:
    """Returns the context element as compact JSON; number literals as received.

    Args:
        entity: id, type and attributes in NGSIv2's normalized form.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.
        context_element: the context element as received, where the event came as one.

    Raises:
        MessageError: the attribute isn't there or isn't an object, or the text isn't UTF-8.
    """
    received = context_element is not None
    source = context_element if context_element is not None else entity
    attributes = received_attributes(source, attribute) if received else attributes_of(entity, attribute)
    known = {name: source[name] for name in ("id", "type") if name in source}
    pattern = source.get("isPattern", _NO_PATTERN) if received else _NO_PATTERN
    return write_json({**known, "isPattern": pattern, "attributes": attributes})
