"""The schedules a publication may have: five cron fields, or a preset that Airflow knows; and when they come true."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import pairwise

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_LONGEST_PAUSE = timedelta(days=8 * 366)
"""Between two 29ths of February, round the turn of a century that has none."""

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_WEEKDAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_DAYS_OF_MONTH = dict(zip(range(1, 13), (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))
_ITEM = re.compile(r"^(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?$", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    first: int
    last: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


def check(expression: object) -> object:
    """The expression itself, if Airflow can schedule by it; other types pass through to the type check.

    Raises:
        ValueError: it is no cron expression, or one that never comes true.
    """
    if not isinstance(expression, str) or expression in PRESETS:
        return expression
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        presets = ", ".join(sorted(PRESETS))
        raise ValueError(f"a schedule is five cron fields (minute hour day month weekday), one of {presets}, or null")
    values = [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    if parts[4] == "*" and not _some_day_exists(values[2], values[3]):
        raise ValueError(f"the schedule {expression!r} never comes true: no such day in these months")
    return expression


def intervals(expression: str, first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The intervals of a schedule that start between two moments, both included.

    Args:
        expression: one that `check` lets pass.
        first, last: in the time zone of the schedule.
    """
    for start, end in pairwise(_moments(expression, first, last + _LONGEST_PAUSE)):
        if start > last:
            return
        yield start, end


def _moments(expression: str, first: datetime, last: datetime) -> Iterator[datetime]:
    """When a schedule comes true between two moments, both included, rising."""
    parts = PRESETS.get(expression, expression).split()
    minutes, hours, days, months, weekdays = (_values(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    sunday_first = {weekday % 7 for weekday in weekdays}
    day = first.date()
    while day <= last.date():
        by_date, by_weekday = day.day in days, (day.weekday() + 1) % 7 in sunday_first
        # Where both are given, either is enough, as cron has always had it.
        either = parts[2] != "*" and parts[4] != "*"
        if day.month in months and (by_date or by_weekday if either else by_date and by_weekday):
            at = (
                datetime.combine(day, time(hour, minute), first.tzinfo)
                for hour in sorted(hours)
                for minute in sorted(minutes)
            )
            yield from (moment for moment in at if first <= moment <= last)
        day += timedelta(days=1)


def _values(part: str, field: _Field) -> set[int]:
    return {value for item in part.split(",") for value in _item_values(item, field)}


def _item_values(item: str, field: _Field) -> range:
    match = _ITEM.match(item)
    if match is None:
        raise ValueError(f"{item!r} is not a {field.name}: write *, 5, 1-5, */5 or a list of these")
    step = int(match["step"] or 1)
    if match["all"]:
        first, last = field.first, field.last
    else:
        first = _value(match["first"], field)
        last = _value(match["last"], field) if match["last"] else field.last if match["step"] else first
    if first > last or step < 1 or step > field.last:
        raise ValueError(f"{item!r} is no range of a {field.name}: it goes upwards, by a step of 1 to {field.last}")
    return range(first, last + 1, step)


def _value(text: str, field: _Field) -> int:
    value = field.names.get(text.lower())
    if value is None and text.isdigit():
        value = int(text)
    if value is None or not field.first <= value <= field.last:
        raise ValueError(f"{text!r} is not a {field.name}: expected {field.first} to {field.last}")
    return value


def _some_day_exists(days: set[int], months: set[int]) -> bool:
    return any(min(days) <= _DAYS_OF_MONTH[month] for month in months)
