"""GeoJSON geometries (RFC 7946, section 3.1): the six that a broker stores as a place."""

from __future__ import annotations

from collections.abc import Callable

from contexture.events.rules import shown
from contexture.ngsi.rules.numbers import number

_SHORTEST_LINE = 2
_SHORTEST_RING = 4

Problem = str | None


def geometry_problem(value: object) -> Problem:
    """What keeps a value from being a geometry with coordinates on Earth, or None."""
    if not isinstance(value, dict):
        return f"should be a GeoJSON geometry, but is {shown(value)}"
    kind = value.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return f"has the geometry type {shown(kind)}, which is none of {', '.join(_CHECKS)}"
    return check(value.get("coordinates"))


def _position(value: object) -> Problem:
    if type(value) is not list or len(value) < 2:
        return "has a position that isn't [longitude, latitude]"
    longitude, latitude = number(value[0]), number(value[1])
    if longitude is None or latitude is None:
        return "has coordinates that aren't numbers"
    if -180 <= longitude <= 180 and -90 <= latitude <= 90:
        return None
    swapped = " (are they swapped?)" if -90 <= longitude <= 90 and -180 <= latitude <= 180 else ""
    return f"has a longitude or latitude out of range{swapped}"


def _line(value: object) -> Problem:
    if type(value) is list and len(value) < _SHORTEST_LINE:
        return "has a line of fewer than 2 positions"
    return _many_positions(value)


def _ring(value: object) -> Problem:
    problem = _many_positions(value)
    if problem is not None or type(value) is not list:
        return problem
    if len(value) < _SHORTEST_RING:
        return "has a ring of fewer than 4 positions"
    return None if _place(value[0]) == _place(value[-1]) else "has a ring that isn't closed"


def _place(position: list[object]) -> list[float | None]:
    return [number(coordinate) for coordinate in position]


def _each(check: Callable[[object], Problem]) -> Callable[[object], Problem]:
    def check_all(value: object) -> Problem:
        if type(value) is not list:
            return "has coordinates that aren't an array"
        return next((problem for problem in map(check, value) if problem is not None), None)

    return check_all


_many_positions = _each(_position)

_CHECKS: dict[str, Callable[[object], Problem]] = {
    "Point": _position,
    "MultiPoint": _many_positions,
    "LineString": _line,
    "MultiLineString": _each(_line),
    "Polygon": _each(_ring),
    "MultiPolygon": _each(_each(_ring)),
}
