"""Geographical conditions: `georel`, `geometry`, `coords`.

Thin: lines and polygons of entities count as their corners, which is exact for points and good enough for a test.
The recordings show nothing of geometry (their database had no geo index); this follows the NGSIv2 specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import asin, cos, radians, sin, sqrt

from contexture_sandbox.context_broker.answers import bad_request
from contexture_sandbox.context_broker.expressions import Predicate
from contexture_sandbox.context_broker.model import StoredEntity

EARTH_METRES = 6_371_008.8
Point = tuple[float, float]
"""Latitude, longitude, as in `coords`; GeoJSON has them the other way round."""


def geo_predicate(georel: str | None, geometry: str | None, coords: str | None) -> Predicate | None:
    """The condition on an entity's geo:json attribute; None when none was given.

    Raises:
        Refusal: 400, one of the three is missing or not understood.
    """
    if georel is None and geometry is None and coords is None:
        return None
    if georel is None or geometry is None or coords is None:
        raise bad_request("Invalid query: georel, geometry and coords must be used together")
    relation, *modifiers = georel.split(";")
    test = _relation(relation, modifiers, geometry, _points(coords))
    return lambda entity: bool(places := list(_places(entity))) and test(places)


def _points(coords: str) -> list[Point]:
    try:
        pairs = [[float(part) for part in pair.split(",")] for pair in coords.split(";")]
        return [(latitude, longitude) for latitude, longitude in pairs]
    except ValueError as error:
        raise bad_request("Invalid query: bad coordinates") from error


def _relation(relation: str, modifiers: list[str], geometry: str, shape: list[Point]) -> Callable[[list[Point]], bool]:
    if relation == "near" and geometry == "point":
        low, high = _distances(modifiers)
        return lambda places: low <= min(distance_metres(shape[0], place) for place in places) <= high
    covers = _area(geometry, shape)
    tests: dict[str, Callable[[list[Point]], bool]] = {
        "coveredBy": lambda places: all(map(covers, places)),
        "intersects": lambda places: any(map(covers, places)),
        "disjoint": lambda places: not any(map(covers, places)),
        "equals": lambda places: places == shape,
    }
    if relation not in tests:
        raise bad_request(f"Invalid query: invalid georel {relation}")
    return tests[relation]


def _distances(modifiers: list[str]) -> tuple[float, float]:
    given = dict(modifier.partition(":")[::2] for modifier in modifiers)
    try:
        return float(given.get("minDistance", 0)), float(given.get("maxDistance", "inf"))
    except ValueError as error:
        raise bad_request("Invalid query: bad distance") from error


def _area(geometry: str, shape: list[Point]) -> Callable[[Point], bool]:
    if geometry == "box" and len(shape) == 2:
        (south, north), (west, east) = (sorted(axis) for axis in zip(*shape, strict=True))
        return lambda place: south <= place[0] <= north and west <= place[1] <= east
    if geometry == "polygon" and len(shape) > 3:
        return lambda place: _inside(place, shape)
    if geometry in {"point", "line"}:
        return lambda place: place in shape
    raise bad_request(f"Invalid query: invalid geometry {geometry}")


def _inside(place: Point, ring: list[Point]) -> bool:
    """Even-odd rule."""
    latitude, longitude = place
    crossings = 0
    for (north, east), (south, west) in pairwise(ring):
        if (north > latitude) != (south > latitude):
            crossings += longitude < (west - east) * (latitude - north) / (south - north) + east
    return crossings % 2 == 1


def distance_metres(one: Point, other: Point) -> float:
    """Great-circle distance."""
    (lat1, lon1), (lat2, lon2) = (tuple(map(radians, point)) for point in (one, other))
    half = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_METRES * asin(sqrt(half))


def _places(entity: StoredEntity) -> Iterator[Point]:
    for attribute in entity.attributes.values():
        if attribute.type == "geo:json":
            value = attribute.decoded()
            yield from _corners(value.get("coordinates") if isinstance(value, dict) else None)
            return


def _corners(coordinates: object) -> Iterator[Point]:
    if not isinstance(coordinates, list):
        return
    if len(coordinates) > 1 and all(isinstance(number, int | float) for number in coordinates):
        yield (coordinates[1], coordinates[0])
        return
    for part in coordinates:
        yield from _corners(part)
