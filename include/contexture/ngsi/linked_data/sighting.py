"""The few members of an NGSI-LD entity that a pull needs itself."""

from __future__ import annotations

from typing import Any

import msgspec

from contexture.ngsi.linked_data.entity import SERVICE_PATH, system_time, type_name
from contexture.ngsi.sighting import Sighting, moment


class _Head(msgspec.Struct):
    id: Any = None
    type: Any = None
    createdAt: Any = None  # noqa: N815  # the name in the JSON
    modifiedAt: Any = None  # noqa: N815  # the name in the JSON


_HEAD = msgspec.json.Decoder(_Head)


def sight_linked_data(body: bytes) -> Sighting:
    """Reads an entity's head, whatever else is wrong with it; it has times where `options=sysAttrs` was asked."""
    try:
        head = _HEAD.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Sighting(SERVICE_PATH, None, None, None, None)
    entity_id = head.id if isinstance(head.id, str) else None
    return Sighting(SERVICE_PATH, entity_id, type_name(head.type), _time(head.createdAt), _time(head.modifiedAt))


def _time(value: object) -> str | None:
    text = system_time(value)
    return text if moment(text) is not None else None
