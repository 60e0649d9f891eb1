"""RFC 3339: the times of events."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import orjson

_RFC_3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|([+-])(\d{2}):(\d{2}))", re.ASCII
)
_USUAL = re.compile(r"\d{4}-\d{2}-\d{2}T(?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})", re.ASCII)
_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LAST_MINUTE = 23 * 60 + 59
_DAY = 24 * 60


def is_timestamp(text: str) -> bool:
    """Whether a text is an RFC 3339 date and time with its offset; a leap second is one where UTC has them.

    >>> is_timestamp("2018-04-05T17:31:00Z"), is_timestamp("2018-04-05T17:31:00")
    (True, False)
    """
    return _is_usual(text) or _is_unusual(text)


def _is_usual(text: str) -> bool:
    """Nearly all times, in a quarter of the time: Python reads many other forms, and knows neither leap seconds nor
    the year 0."""
    try:
        return _USUAL.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_unusual(text: str) -> bool:
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    offset = _offset_minutes(found[7], found[8], found[9])
    if offset is None or not 1 <= month <= 12 or hour > 23 or minute > 59:
        return False
    if not 1 <= day <= _DAYS[month] or (month == 2 and day == 29 and not _is_leap(year)):
        return False
    return second < 60 or (second == 60 and (hour * 60 + minute - offset) % _DAY == _LAST_MINUTE)


def timestamp(moment: datetime) -> str | None:
    """A moment as RFC 3339 writes it: UTC as `Z`, other offsets kept; None where it has no offset of whole minutes."""
    if moment.tzinfo is UTC:
        # The same text as below, in a third of the time.
        return utc_bytes(moment).decode()
    offset = moment.utcoffset()
    if offset is None or offset.total_seconds() % 60:
        return None
    text = moment.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def utc_bytes(moment: datetime) -> bytes:
    """A moment whose zone is `datetime.UTC`, as RFC 3339 writes it."""
    return orjson.dumps(moment, None, orjson.OPT_UTC_Z)[1:-1]


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _offset_minutes(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 23 or int(minutes) > 59:
        return None
    offset = int(hours) * 60 + int(minutes)
    return -offset if sign == "-" else offset
