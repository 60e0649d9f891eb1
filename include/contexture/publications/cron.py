"""The schedules a publication may have: five cron fields, or a preset that Airflow knows."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass

PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"})

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
