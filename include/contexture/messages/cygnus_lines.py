"""The body format `cygnus-lines`: one JSON line for each event, with the bytes Cygnus writes.

A line is `{"headers":[service,path,timestamp],"body":{attributes,type,id}}`. Three of upstream's corruptions are
corrected: each line carries its own service path, service and path are JSON-escaped, and a line for one attribute holds
that attribute. Attributes stand in the order received, where upstream has Java's hash order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson

from contexture.messages import html_safe
from contexture.messages.errors import MessageError

_CACHED_HEADERS = 4096
_NEXT_STEP = "correct the entity in its source"
_ABSENT: dict[str, object] = {}


def line(
    *,
    service: str,
    service_path: str,
    timestamp_ms: int,
    entity: Mapping[str, object],
    attribute: str | None = None,
) -> bytes:
    """The line of one event, without a newline.

    Args:
        service: its service, for the header `fiware-service`.
        service_path: its own service path, for the header `fiware-servicePath`.
        timestamp_ms: when it was received, milliseconds since 1970.
        entity: id, type and attributes in NGSIv2's normalized form.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.

    Raises:
        MessageError: the attribute isn't there or isn't an object, or the text isn't UTF-8.
    """
    try:
        body = html_safe.dumps(_body(entity, attribute))
        return b'%b%d}],"body":%b}' % (_headers(service, service_path), timestamp_ms, body)
    except TypeError as error:
        raise MessageError(f"the entity can't be written as JSON ({error})", next_step=_NEXT_STEP) from error


def join(lines: Iterable[bytes]) -> bytes:
    r"""The value of a sub-batch's record: its lines joined by `\n`, none at the end."""
    return b"\n".join(lines)


# Upstream pastes both as they are; only what JSON itself needs is escaped here, so all its readable lines are the same.
@lru_cache(_CACHED_HEADERS)
def _headers(service: str, service_path: str) -> bytes:
    return b'{"headers":[{"fiware-service":%b},{"fiware-servicePath":%b},{"timestamp":' % (
        orjson.dumps(service),
        orjson.dumps(service_path),
    )


def _body(entity: Mapping[str, object], attribute: str | None) -> dict[str, object]:
    if attribute is None:
        attributes = [_attribute(name, member) for name, member in entity.items() if name not in ("id", "type")]
    elif attribute in entity:
        attributes = [_attribute(attribute, entity[attribute])]
    else:
        raise MessageError("the entity lacks the attribute the line is for", next_step="report this", name=attribute)
    return {"attributes": attributes, "type": entity.get("type"), "id": entity.get("id")}


def _attribute(name: str, attribute: object) -> dict[str, object]:
    if not isinstance(attribute, dict):
        raise MessageError("an attribute isn't an object with a value", next_step=_NEXT_STEP, attribute=name[:100])
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
    raise MessageError("the metadata of an attribute isn't an object", next_step=_NEXT_STEP)


def _metadata(name: str, metadata: object) -> dict[str, object]:
    if not isinstance(metadata, dict):
        raise MessageError("a metadata isn't an object with a value", next_step=_NEXT_STEP, metadata=name[:100])
    return {"name": name, "type": metadata.get("type"), "value": metadata.get("value")}
