"""Values of the types NGSIv2 gives a meaning: numbers, booleans, moments, places."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from contexture.events.rules import Findings, named, shown
from contexture.ngsi.rules.geometry import geometry_problem
from contexture.ngsi.rules.numbers import number

LARGEST_EXACT = 2**53
EARLIEST_PLAUSIBLE_YEAR = 1990
PLAUSIBLY_AHEAD = timedelta(days=1)
GEO_LEGACY = frozenset(("geo:point", "geo:line", "geo:box", "geo:polygon"))

_INTERVAL_SEPARATOR = "/"
_MOMENTS = frozenset(("DateTime", "ISO8601"))
_DATE_LENGTH = len("2026-11-21")

ValueCheck = Callable[[str, object, datetime | None, Findings], None]


class TypeMeaning(NamedTuple):
    """What the type of an attribute asks of its value.

    Attributes:
        check: the check of a value that isn't null.
        place: whether the attribute is a place.
    """

    check: ValueCheck
    place: bool = False


def moment_of(value: object) -> datetime | None:
    """The moment an ISO 8601 text says (UTC where it names no zone), of an interval its end; None if it says none."""
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


def _check_number(name: str, value: object, _now: datetime | None, found: Findings) -> None:
    magnitude = number(value)
    if magnitude is None:
        found.add("number-string", f"{named(name)} should be a JSON number, but is {shown(value)}")
    elif not -LARGEST_EXACT <= magnitude <= LARGEST_EXACT:
        found.add("number-precision", f"{named(name)} is beyond 2^53: {shown(value)}")


def _check_boolean(name: str, value: object, _now: datetime | None, found: Findings) -> None:
    if value is not True and value is not False:
        found.add("bool-string", f"{named(name)} should be true or false, but is {shown(value)}")


def _check_moment(name: str, value: object, now: datetime | None, found: Findings) -> None:
    if not isinstance(value, str):
        found.add("datetime", f"{named(name)} should be an ISO 8601 text, but is {shown(value)}")
        return
    try:
        moment = _iso8601(value)
    except ValueError:
        _tell_unreadable(name, value, found)
        return
    if moment.tzinfo is None:
        found.add("datetime", f"{named(name)} names no zone, which a broker reads as UTC: {shown(value)}")
        moment = moment.replace(tzinfo=UTC)
    if moment.year < EARLIEST_PLAUSIBLE_YEAR:
        found.add("datetime-range", f"{named(name)} is before {EARLIEST_PLAUSIBLE_YEAR}: {shown(value)}")
    # Most moments are past, so the sum is rarely worked out. Two moments differ by less than a datetime can hold.
    elif now is not None and moment > now and moment - now > PLAUSIBLY_AHEAD:
        found.add("datetime-range", f"{named(name)} is more than a day ahead: {shown(value)}")


def _check_geometry(name: str, value: object, _now: datetime | None, found: Findings) -> None:
    problem = geometry_problem(value)
    if problem is not None:
        found.add("geojson", f"{named(name)} {problem}")


def _check_legacy_place(name: str, _value: object, _now: datetime | None, found: Findings) -> None:
    found.add("geo-legacy", f"{named(name)} is a place in a form older than geo:json")


def _check_nothing(_name: str, _value: object, _now: datetime | None, _found: Findings) -> None:
    """Texts may be anything but null."""


def _iso8601(text: str) -> datetime:
    # Python takes any character between date and time; ISO 8601 has a T there.
    if len(text) > _DATE_LENGTH and "T" not in text:
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _tell_unreadable(name: str, value: str, found: Findings) -> None:
    if is_interval("DateTime", value):
        found.add("datetime", f"{named(name)} is an interval, not a moment: {shown(value)}")
    else:
        found.add("datetime", f"{named(name)} can't be read as ISO 8601: {shown(value)}")


TYPE_MEANINGS: dict[str, TypeMeaning] = {
    **dict.fromkeys(("Number", "Integer", "Float"), TypeMeaning(_check_number)),
    "Boolean": TypeMeaning(_check_boolean),
    **dict.fromkeys(_MOMENTS, TypeMeaning(_check_moment)),
    "geo:json": TypeMeaning(_check_geometry, place=True),
    **dict.fromkeys(GEO_LEGACY, TypeMeaning(_check_legacy_place, place=True)),
    **dict.fromkeys(("Text", "TextUnrestricted"), TypeMeaning(_check_nothing)),
}
