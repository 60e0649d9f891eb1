"""Places: GeoJSON, and NGSIv2's older types that write latitude before longitude."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import orjson

GEOMETRIES = frozenset(("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"))

_FEWEST = {"geo:line": 2, "geo:polygon": 4}
_CORNERS = 2
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class _Degrees(NamedTuple):
    """A coordinate: what it says, and how it was written."""

    value: float
    written: object


class _Position(NamedTuple):
    """A place; GeoJSON has the longitude first."""

    longitude: _Degrees
    latitude: _Degrees


def geometry(value: object) -> Mapping[str, object] | None:
    """The geometry of a GeoJSON value (of a Feature, its own); None when it has none."""
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "Feature":
        return geometry(value.get("geometry"))
    return value if value.get("type") in GEOMETRIES else None


def legacy_geometry(kind: str, value: object) -> Mapping[str, object] | None:
    """The GeoJSON geometry of a `geo:point`, `geo:line`, `geo:box` or `geo:polygon`; None when it is none.

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
    west, east = (degrees.written for degrees in sorted((one.longitude, other.longitude), key=_value))
    south, north = (degrees.written for degrees in sorted((one.latitude, other.latitude), key=_value))
    return [[west, south], [east, south], [east, north], [west, north], [west, south]]


def _value(degrees: _Degrees) -> float:
    return degrees.value


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
