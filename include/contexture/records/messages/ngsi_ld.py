"""The body format `ngsi-ld`: a normalized NGSI-LD entity, the source's own or one converted from NGSIv2.

    Relationship, or refX holding texts     Relationship, its object a URI
    geo:json, geo:point, geo:line …         GeoProperty, its value GeoJSON
    DateTime, ISO8601, Date, Time           Property, its value {"@type": …, "@value": …}
    null                                    Property, its value {"@type": "@json", "@value": null}
    LanguageProperty and its kin            the same kind again, for entities that came from NGSI-LD
    everything else                         Property, its value as it is

Metadata: `observedAt`, `timestamp` or `TimeInstant` is `observedAt`, `unitCode` and `datasetId` are themselves, the
builtin times are `createdAt` and `modifiedAt`, and all others are Properties of the attribute. A value that doesn't fit
its type (a geo:json that is no geometry) is a Property, so that no value is left out. Names of NGSIv2 types without a
meaning in NGSI-LD (Number, Text …) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import quote

import orjson

from contexture.events import AttributeName
from contexture.records.messages.content import CORRECT_ENTITY, MessageError, missing_attribute_error, write_json
from contexture.sources.ngsi.attributes import instance_key, instances

GEOMETRIES = frozenset(("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"))

_FEWEST = {"geo:line": 2, "geo:polygon": 4}
_CORNERS = 2
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class _Degrees(NamedTuple):
    """A coordinate: its value, and how it was written."""

    value: float
    written: object


class _Position(NamedTuple):
    """A place; GeoJSON has the longitude first."""

    longitude: _Degrees
    latitude: _Degrees


def geometry(value: object) -> Mapping[str, object] | None:
    """Returns the geometry of a GeoJSON value (of a Feature, its own); None when it has none."""
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "Feature":
        return geometry(value.get("geometry"))
    return value if value.get("type") in GEOMETRIES else None


def legacy_geometry(kind: str, value: object) -> Mapping[str, object] | None:
    """Returns the GeoJSON geometry of a `geo:point`, `geo:line`, `geo:box` or `geo:polygon`; None when it is none.

    NGSIv2 writes positions as "latitude, longitude"; the digits stay as they were written.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        return None
    positions = [_position(text) for text in texts]
    found = [position for position in positions if position is not None]
    return _shaped(kind, found) if len(found) == len(positions) else None


def _shaped(kind: str, positions: list[_Position]) -> Mapping[str, object] | None:
    written = [[position.longitude.written, position.latitude.written] for position in positions]
    if kind == "geo:point" and len(positions) == 1:
        return {"type": "Point", "coordinates": written[0]}
    if kind == "geo:box" and len(positions) == _CORNERS:
        return {"type": "Polygon", "coordinates": [_rectangle(*positions)]}
    if kind == "geo:line" and len(positions) >= _FEWEST[kind]:
        return {"type": "LineString", "coordinates": written}
    if kind == "geo:polygon" and len(positions) >= _FEWEST[kind]:
        return {"type": "Polygon", "coordinates": [written]}
    return None


def _rectangle(one: _Position, other: _Position) -> list[list[object]]:
    west, east = (degrees.written for degrees in sorted((one.longitude, other.longitude), key=attrgetter("value")))
    south, north = (degrees.written for degrees in sorted((one.latitude, other.latitude), key=attrgetter("value")))
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def _position(text: object) -> _Position | None:
    parts = text.split(",") if isinstance(text, str) else []
    try:
        latitude, longitude = map(_degrees, parts)
    except ValueError:
        return None
    inside = -90 <= latitude.value <= 90 and -180 <= longitude.value <= 180
    return _Position(longitude, latitude) if inside else None


def _degrees(text: str) -> _Degrees:
    digits = text.strip()
    value = float(digits)
    return _Degrees(value, orjson.Fragment(digits) if _NUMBER.fullmatch(digits) else value)


_SCHEME = re.compile(r"^(?:urn|https?):", re.IGNORECASE)
# What RFC 3986 allows, percent signs of finished escapes included.
_LEGAL = "!#$%&'()*+,-./:;=?@_~[]"
_LEGAL_IN_NAME = "!$'()*+,-.:;=@_~"


def is_uri(text: str) -> bool:
    """Returns whether a text is taken as a URI: `urn:`, `http:` or `https:`. `Room:1` is a name, not a scheme."""
    return _SCHEME.match(text) is not None


def entity_uri(entity_id: str, entity_type: str) -> str:
    """Returns the id of an entity as a URI: itself if it is one, else `urn:ngsi-ld:<type>:<id>`, percent-encoded.

    >>> entity_uri("car1", "car")
    'urn:ngsi-ld:car:car1'
    """
    if is_uri(entity_id):
        return quote(entity_id, safe=_LEGAL)
    return f"urn:ngsi-ld:{quote(entity_type, safe=_LEGAL_IN_NAME)}:{quote(entity_id, safe=_LEGAL_IN_NAME)}"


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


def to_ngsi_ld(name: str, attribute: object) -> Converted:
    """Returns the NGSI-LD attribute of an attribute in NGSIv2's normalized form.

    Raises:
        MessageError: it isn't an object, or its metadata has the name of an attribute's own member.
    """
    if not isinstance(attribute, Mapping):
        raise MessageError("an attribute is not an object with a value", next_step=CORRECT_ENTITY, attribute=name[:100])
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
        raise MessageError("the metadata of an attribute is not an object", next_step=CORRECT_ENTITY)
    members: Converted = {}
    for name, item in metadata.items():
        if not isinstance(item, Mapping):
            raise MessageError(
                "a metadata is not an object with a value", next_step=CORRECT_ENTITY, metadata=name[:100]
            )
        own = _own_member(name, item.get("value"))
        member, value = own if own is not None and own[0] not in members else _sub_attribute(name, item)
        members[member] = value
    return members


def _own_member(name: str, value: object) -> tuple[str, object] | None:
    """Returns the metadata as a member that NGSI-LD defines, if its value is legal there."""
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
            f"the metadata {name!r} has the name of something else in NGSI-LD, and its value does not fit that",
            next_step="rename it in the source, or use another message.format",
        )
    return name, _kind_and_value(name, metadata.get("type"), metadata.get("value"))


def _utc(text: str) -> str | None:
    """Returns a moment as NGSI-LD writes it, in UTC; None if the text is none. A text in that form is unchanged."""
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


CORE_CONTEXT = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"
"""The @context of NGSI-LD itself (ETSI GS CIM 009, 4.4); names it doesn't define fall under its default vocabulary."""

_CONTEXT = "@context"
_KEPT = ("id", "type", "scope")


def body(
    entity: Mapping[str, object],
    linked_data: Mapping[str, object] | None = None,
    attribute: AttributeName | None = None,
    *,
    context: str | None = None,
) -> bytes:
    """Returns the entity as compact JSON (`application/ld+json`); number literals as received.

    Args:
        entity: id, type and attributes in NGSIv2's normalized form; converted when there is no `linked_data`.
        linked_data: the NGSI-LD entity as its source sent it; written as it is.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.
        context: address of the @context that the source's names are compacted by; the core context is added to it.

    Raises:
        MessageError: the entity has no NGSI-LD form, lacks the attribute, or isn't UTF-8.
    """
    whole = _converted(entity, attribute) if linked_data is None else _received(linked_data, attribute)
    if _CONTEXT not in whole:
        whole[_CONTEXT] = CORE_CONTEXT if not context or context == CORE_CONTEXT else [context, CORE_CONTEXT]
    return write_json(whole)


def _converted(entity: Mapping[str, object], attribute: AttributeName | None) -> dict[str, object]:
    entity_id, entity_type = entity.get("id"), entity.get("type")
    if not isinstance(entity_id, str) or not isinstance(entity_type, str) or not entity_id or not entity_type:
        raise MessageError("an NGSI-LD entity needs an id and a type", next_step="name both in the source")
    head = {"id": entity_uri(entity_id, entity_type), "type": entity_type}
    if attribute is None:
        return {**head, **{name: to_ngsi_ld(name, entity[name]) for name in entity if name not in ("id", "type")}}
    member = instance_key(attribute.name, attribute.dataset_id)
    if member not in entity:
        raise missing_attribute_error(attribute.name)
    return {**head, attribute.name: to_ngsi_ld(attribute.name, entity[member])}


def _received(linked_data: Mapping[str, object], attribute: AttributeName | None) -> dict[str, object]:
    if attribute is None:
        return dict(linked_data)
    if attribute.name not in linked_data:
        raise missing_attribute_error(attribute.name)
    kept = {name: linked_data[name] for name in _KEPT if name in linked_data}
    context = {_CONTEXT: linked_data[_CONTEXT]} if _CONTEXT in linked_data else {}
    return {**kept, attribute.name: _instance(linked_data[attribute.name], attribute), **context}


def _instance(attribute: object, wanted: AttributeName) -> object:
    """Returns the instance that the event shows; the default one has no datasetId."""
    for dataset_id, instance in instances(wanted.name, attribute):
        if dataset_id == wanted.dataset_id:
            return instance
    raise missing_attribute_error(wanted.name)
