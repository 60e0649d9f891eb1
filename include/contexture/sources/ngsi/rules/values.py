"""Values of the types that NGSIv2 defines: numbers, booleans, times, geometries."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
import orjson

from contexture.events import parse_json
from contexture.events.rules import RuleFindings, abbreviate, violation_subject
from contexture.events.text_cache import cache_by_text
from contexture.sources.ngsi.entity import ParsedEntity

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TYPES = ("Number", "Integer", "Float")


def coerce_numbers(parsed: ParsedEntity) -> ParsedEntity:
    """Returns the entity with numbers for texts that are JSON numbers, in attributes of a number's type.

    Digits stay as they were written. What is no number as JSON writes it (`1,5`, `012`, `12 km`) stays a text. Where
    nothing changes, the same entity is returned.
    """
    read = {name: {**attribute, "value": value} for name, attribute, value in _texts(parsed)}
    if not read:
        return parsed
    return msgspec.structs.replace(parsed, entity=parsed.entity | read, attributes=parsed.attributes | read)


def _texts(parsed: ParsedEntity) -> list[tuple[str, dict[str, object], object]]:
    return [
        (name, attribute, parse_json(value.encode()))
        for name, attribute in parsed.attributes.items()
        if isinstance(attribute, dict)
        and attribute.get("type") in _TYPES
        and isinstance(value := attribute.get("value"), str)
        and _NUMBER.fullmatch(value)
    ]


def number(value: object) -> float | None:
    """Returns the magnitude of a JSON number, None for another value; infinite where no double is as large."""
    kind = type(value)
    if kind is int or kind is float:
        return value  # type: ignore[return-value]  # narrowed by its exact type, which leaves booleans out
    if kind is orjson.Fragment:
        return float(orjson.dumps(value))
    return None


_SHORTEST_LINE = 2
_SHORTEST_RING = 4

Problem = str | None


def geometry_problem(value: object) -> Problem:
    """Returns what is wrong with a geometry with coordinates on Earth, or None."""
    if not isinstance(value, dict):
        return f"should be a GeoJSON geometry, but is {abbreviate(value)}"
    kind = value.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return f"has the geometry type {abbreviate(kind)}, which is none of {', '.join(_CHECKS)}"
    return check(value.get("coordinates"))


def _position(value: object) -> Problem:
    if type(value) is not list or len(value) < 2:
        return "has a position that is not [longitude, latitude]"
    longitude, latitude = number(value[0]), number(value[1])
    if longitude is None or latitude is None:
        return "has coordinates that are not numbers"
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
    return None if _place(value[0]) == _place(value[-1]) else "has a ring that is not closed"


def _place(position: list[object]) -> list[float | None]:
    return [number(coordinate) for coordinate in position]


def _each(check: Callable[[object], Problem]) -> Callable[[object], Problem]:
    def check_all(value: object) -> Problem:
        if type(value) is not list:
            return "has coordinates that are not an array"
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

MAXIMUM_LENGTH = 256
RESERVED_ATTRIBUTE_NAMES = frozenset(("id", "type", "geo:distance", "*"))

# ASCII 33 to 126 without `& ? / #` (they structure URLs) and without `< > " ' = ; ( )` (forbidden everywhere).
_SYNTAX = re.compile(r"[!$%*+,\-.0-9:@A-Z\[\\\]^_`a-z{|}~]{1,256}")
_ACCEPTED = re.compile(r"[!$%*+,\-.0-9:@A-Z\[\\\]^_`a-z{|}~]*")
_CACHED_NAMES = 8192

is_identifier = _SYNTAX.fullmatch
"""Truthy for a text that NGSIv2 accepts as an identifier."""


def syntax_problem(text: str) -> str | None:
    """Returns what is wrong with an identifier, or None."""
    if is_identifier(text):
        return None
    if not text:
        return "is empty"
    if len(text) > MAXIMUM_LENGTH:
        return f"has {len(text)} characters; NGSIv2 accepts {MAXIMUM_LENGTH}"
    accepted = _ACCEPTED.match(text)
    return f"holds {text[accepted.end()]!a}, which NGSIv2 refuses" if accepted else None


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LINKED_DATA_RESERVED = frozenset(("id", "type", "@context", "*"))
_TERM = re.compile(r"[^\W\d_]\w*")
# One instance of several has the name of the attribute, a colon, and its datasetId.
_INSTANCE = re.compile(rf"{_TERM.pattern}:{_URI.pattern}")


def uri_problem(text: str) -> str | None:
    """Returns what is wrong with a URI (RFC 3986), which NGSI-LD requires as an entity's id, or None."""
    if _URI.fullmatch(text):
        return None
    return "is not a URI, which NGSI-LD requires"


@cache_by_text(_CACHED_NAMES)
def linked_data_name_problem(name: str) -> str | None:
    """Returns what is wrong with a type or attribute name of NGSI-LD (a term, or an IRI), or None."""
    if name in _LINKED_DATA_RESERVED:
        return "is reserved"
    is_name = _TERM.fullmatch(name) or _URI.fullmatch(name) or _INSTANCE.fullmatch(name)
    return None if is_name else "is neither a term nor an IRI"


@cache_by_text(_CACHED_NAMES)
def linked_data_type_problem(name: str) -> str | None:
    """Returns what is wrong with the type of an NGSI-LD entity, or several joined by commas, or None."""
    problem = linked_data_name_problem(name)
    if problem is None or not any(map(linked_data_name_problem, name.split(","))):
        return None
    return problem


@cache_by_text(_CACHED_NAMES)
def name_problem(name: str) -> str | None:
    """Returns what is wrong with the name of an attribute, or None."""
    return "is reserved" if name in RESERVED_ATTRIBUTE_NAMES else syntax_problem(name)


@cache_by_text(_CACHED_NAMES)
def type_problem(name: str) -> str | None:
    """Returns what is wrong with a type or the name of a metadata, or None."""
    return syntax_problem(name)


LARGEST_EXACT = 2**53
EARLIEST_PLAUSIBLE_YEAR = 1990
PLAUSIBLY_AHEAD = timedelta(days=1)
GEO_LEGACY = frozenset(("geo:point", "geo:line", "geo:box", "geo:polygon"))

_INTERVAL_SEPARATOR = "/"
_MOMENTS = frozenset(("DateTime", "ISO8601"))
_DATE_LENGTH = len("2026-11-21")

ValueCheck = Callable[[str, object, datetime | None, RuleFindings], None]


class TypeMeaning(NamedTuple):
    """What the type of an attribute requires of its value.

    Attributes:
        check: the check of a value that is not null.
        place: whether the attribute is a place.
    """

    check: ValueCheck
    place: bool = False


def moment_of(value: object) -> datetime | None:
    """Returns the moment of an ISO 8601 text (UTC without a zone), of an interval its end; None if it has none."""
    if not isinstance(value, str):
        return None
    try:
        moment = _iso8601(value.rpartition(_INTERVAL_SEPARATOR)[2])
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def is_interval(kind: str, value: object) -> bool:
    """Whether the value of a moment's type is an interval whose ends can both be read."""
    if kind not in _MOMENTS or not isinstance(value, str):
        return False
    start, separator, end = value.partition(_INTERVAL_SEPARATOR)
    return bool(separator) and moment_of(start) is not None and moment_of(end) is not None


def _check_number(name: str, value: object, _now: datetime | None, found: RuleFindings) -> None:
    magnitude = number(value)
    if magnitude is None:
        found.add("number-string", f"{violation_subject(name)} should be a JSON number, but is {abbreviate(value)}")
    elif not -LARGEST_EXACT <= magnitude <= LARGEST_EXACT:
        found.add("number-precision", f"{violation_subject(name)} is beyond 2^53: {abbreviate(value)}")


def _check_boolean(name: str, value: object, _now: datetime | None, found: RuleFindings) -> None:
    if value is not True and value is not False:
        found.add("bool-string", f"{violation_subject(name)} should be true or false, but is {abbreviate(value)}")


def _check_moment(name: str, value: object, now: datetime | None, found: RuleFindings) -> None:
    if not isinstance(value, str):
        found.add("datetime", f"{violation_subject(name)} should be an ISO 8601 text, but is {abbreviate(value)}")
        return
    try:
        moment = _iso8601(value)
    except ValueError:
        _find_unreadable(name, value, found)
        return
    if moment.tzinfo is None:
        found.add(
            "datetime", f"{violation_subject(name)} names no zone, which a broker reads as UTC: {abbreviate(value)}"
        )
        moment = moment.replace(tzinfo=UTC)
    if moment.year < EARLIEST_PLAUSIBLE_YEAR:
        found.add(
            "datetime-range", f"{violation_subject(name)} is before {EARLIEST_PLAUSIBLE_YEAR}: {abbreviate(value)}"
        )
    # Most moments are past, so the sum is rarely worked out. Two moments differ by less than a datetime can hold.
    elif now is not None and moment > now and moment - now > PLAUSIBLY_AHEAD:
        found.add("datetime-range", f"{violation_subject(name)} is more than a day ahead: {abbreviate(value)}")


def _check_geometry(name: str, value: object, _now: datetime | None, found: RuleFindings) -> None:
    problem = geometry_problem(value)
    if problem is not None:
        found.add("geojson", f"{violation_subject(name)} {problem}")
    elif isinstance(value, dict) and value["type"] == "Point" and _place(value["coordinates"])[:2] == [0, 0]:
        found.add("null-island", f"{violation_subject(name)} is at longitude 0, latitude 0: was its position known?")


def _check_legacy_place(name: str, _value: object, _now: datetime | None, found: RuleFindings) -> None:
    found.add("geo-legacy", f"{violation_subject(name)} is a place in a form older than geo:json")


def _check_nothing(_name: str, _value: object, _now: datetime | None, _found: RuleFindings) -> None:
    """Texts may be anything but null."""


def _iso8601(text: str) -> datetime:
    # Python takes any character between date and time; ISO 8601 has a T there.
    if len(text) > _DATE_LENGTH and "T" not in text:
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _find_unreadable(name: str, value: str, found: RuleFindings) -> None:
    if is_interval("DateTime", value):
        found.add("datetime", f"{violation_subject(name)} is an interval, not a moment: {abbreviate(value)}")
    else:
        found.add("datetime", f"{violation_subject(name)} cannot be read as ISO 8601: {abbreviate(value)}")


TYPE_MEANINGS: dict[str, TypeMeaning] = {
    **dict.fromkeys(("Number", "Integer", "Float"), TypeMeaning(_check_number)),
    "Boolean": TypeMeaning(_check_boolean),
    **dict.fromkeys(_MOMENTS, TypeMeaning(_check_moment)),
    "geo:json": TypeMeaning(_check_geometry, place=True),
    **dict.fromkeys(GEO_LEGACY, TypeMeaning(_check_legacy_place, place=True)),
    **dict.fromkeys(("Text", "TextUnrestricted"), TypeMeaning(_check_nothing)),
}
