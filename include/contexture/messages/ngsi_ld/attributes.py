"""Attributes of NGSIv2 as NGSI-LD has them.

    Relationship, or refX holding texts     Relationship, its object a URI
    geo:json, geo:point, geo:line …         GeoProperty, its value GeoJSON
    DateTime, ISO8601, Date, Time           Property, its value {"@type": …, "@value": …}
    null                                    Property, its value {"@type": "@json", "@value": null}
    LanguageProperty and its kin            the same kind again, for entities that came from NGSI-LD
    everything else                         Property, its value as it is

Metadata: `observedAt`, `timestamp` or `TimeInstant` is `observedAt`, `unitCode` and `datasetId` are themselves, the
builtin times are `createdAt` and `modifiedAt`, and all others are Properties of the attribute. A value that doesn't fit
its type (a geo:json that is no geometry) is a Property: nothing is left out. The name of an NGSIv2 type that has no
meaning in NGSI-LD (Number, Text …) is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from contexture.messages.errors import MessageError
from contexture.messages.ngsi_ld.places import geometry, legacy_geometry
from contexture.messages.ngsi_ld.uris import entity_uri, is_uri

_NEXT_STEP = "correct the entity in its source"
_REFERENCE = re.compile(r"^ref([A-Z].*)$", re.DOTALL)
_TEMPORAL = {"DateTime": "DateTime", "ISO8601": "DateTime", "Date": "Date", "Time": "Time"}
_NULL = {"@type": "@json", "@value": None}
_OBSERVED = ("observedAt", "timestamp", "TimeInstant")
_SYSTEM_TIMES = {"dateCreated": "createdAt", "dateModified": "modifiedAt"}
_TAKEN = frozenset(("type", "value", "object", "observedAt", "unitCode", "datasetId", "createdAt", "modifiedAt"))

# Kinds of NGSI-LD that NGSIv2 lacks: what holds their value.
_OWN_KINDS = {
    "LanguageProperty": "languageMap",
    "VocabProperty": "vocab",
    "VocabularyProperty": "vocab",
    "JsonProperty": "json",
    "ListProperty": "valueList",
    "ListRelationship": "objectList",
}

Converted = dict[str, object]


def converted(name: str, attribute: object) -> Converted:
    """The NGSI-LD attribute of an attribute in NGSIv2's normalized form.

    Raises:
        MessageError: it isn't an object, or its metadata can't stand beside an attribute's own members.
    """
    if not isinstance(attribute, Mapping):
        raise MessageError("an attribute isn't an object with a value", next_step=_NEXT_STEP, attribute=name[:100])
    return {**_kind_and_value(name, attribute.get("type"), attribute.get("value")), **_metadata(attribute)}


def _kind_and_value(name: str, kind: object, value: object) -> Converted:
    if isinstance(kind, str) and kind in _OWN_KINDS:
        return {"type": kind, _OWN_KINDS[kind]: value}
    reference = _relationship(name, kind, value)
    if reference is not None:
        return {"type": "Relationship", "object": reference}
    place = _place(kind, value)
    if place is not None:
        return {"type": "GeoProperty", "value": place}
    return {"type": "Property", "value": _value(kind, value)}


def _relationship(name: str, kind: object, value: object) -> str | list[str] | None:
    match = _REFERENCE.match(name)
    if kind != "Relationship" and not match:
        return None
    target = match[1] if match else "Thing"
    if isinstance(value, str) and value:
        return _reference(value, target)
    if isinstance(value, list) and value and all(isinstance(item, str) and item for item in value):
        return [_reference(item, target) for item in value]
    return None


def _reference(text: str, target: str) -> str:
    return text if is_uri(text) else entity_uri(text, target)


def _place(kind: object, value: object) -> Mapping[str, object] | None:
    # A type that is no text is a warning only, so it may be anything.
    if not isinstance(kind, str):
        return None
    if kind in {"geo:json", "GeoProperty"}:
        return geometry(value)
    return legacy_geometry(kind, value) if kind.startswith("geo:") else None


def _value(kind: object, value: object) -> object:
    if value is None:
        return _NULL
    if isinstance(kind, str) and kind in _TEMPORAL and isinstance(value, str):
        return {"@type": _TEMPORAL[kind], "@value": value}
    return value


def _metadata(attribute: Mapping[str, object]) -> Converted:
    metadata = attribute.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise MessageError("the metadata of an attribute isn't an object", next_step=_NEXT_STEP)
    members: Converted = {}
    for name, item in metadata.items():
        if not isinstance(item, Mapping):
            raise MessageError("a metadata isn't an object with a value", next_step=_NEXT_STEP, metadata=name[:100])
        own = _own_member(name, item.get("value"))
        member, value = own if own is not None and own[0] not in members else _sub_attribute(name, item)
        members[member] = value
    return members


def _own_member(name: str, value: object) -> tuple[str, object] | None:
    """The metadata as a member that NGSI-LD defines, if its value will do for it."""
    if not isinstance(value, str):
        return None
    if name in _OBSERVED or name in _SYSTEM_TIMES:
        moment = _utc(value)
        return (_SYSTEM_TIMES.get(name, "observedAt"), moment) if moment else None
    if name == "unitCode" or (name == "datasetId" and is_uri(value)):
        return name, value
    return None


def _sub_attribute(name: str, metadata: Mapping[str, object]) -> tuple[str, object]:
    if name in _TAKEN:
        raise MessageError(
            f"the metadata {name!r} has the name of something else in NGSI-LD, and its value doesn't fit that",
            next_step="rename it in the source, or use another message.format",
        )
    return name, _kind_and_value(name, metadata.get("type"), metadata.get("value"))


def _utc(text: str) -> str | None:
    """A moment as NGSI-LD writes it, in UTC; None if the text says none. What is in that form stays as it is."""
    if "T" not in text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if text.endswith("Z"):
        return text
    # A broker means UTC where it names no zone.
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
