"""The body format `cygnus-lines`: one JSON line for each event, with the bytes Cygnus writes.

A line is `{"headers":[service,path,timestamp],"body":{attributes,type,isPattern,id}}`; `isPattern` stands only in what
came as NGSIv1. Three of upstream's corruptions are corrected: each line carries its own service path, service and path
are JSON-escaped, and a line for one attribute holds that attribute. Attributes stand in the order received, where
upstream has Java's hash order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import orjson

from contexture.messages import html_safe
from contexture.messages.context_elements import attributes_of, received_attributes
from contexture.messages.errors import MessageError

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
    """The line of one event, without a newline.

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
    try:
        told = _body(entity, attribute) if context_element is None else _received(context_element, attribute)
        body = html_safe.dumps(told)
        return b'%b%d}],"body":%b}' % (_headers(service, service_path), timestamp_ms, body)
    except TypeError as error:
        raise MessageError(
            f"the entity can't be written as JSON ({error})", next_step="correct the entity in its source"
        ) from error


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
    return {"attributes": attributes_of(entity, attribute), "type": entity.get("type"), "id": entity.get("id")}


def _received(element: Mapping[str, object], attribute: str | None) -> dict[str, object]:
    attributes = received_attributes(element, attribute)
    return {"attributes": attributes, **{name: element.get(name) for name in ("type", "isPattern", "id")}}
