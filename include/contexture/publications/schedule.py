"""The schedules a publication may have, as Airflow reads them; when they come true, and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from cron_descriptor import ExpressionDescriptor, FormatException, Options, WrongArgumentException
from croniter import CroniterError, croniter

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_FIELDS = 5
_DRAWN = re.compile(r"(?:^|[\s,])[hr]", re.IGNORECASE)
"""Fields that the library draws by chance (`R`) or by a hash (`H`): each process would see a schedule of its own."""
_ANY_LEAP_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def check(expression: object) -> object:
    """Returns the expression itself, if Airflow can schedule by it; other types pass through to the type check.

    Raises:
        ValueError: it is no cron expression, or one that never comes true.
    """
    if not isinstance(expression, str) or expression in PRESETS:
        return expression
    if len(expression.split()) != _FIELDS:
        presets = ", ".join(sorted(PRESETS))
        raise ValueError(f"a schedule is five cron fields (minute hour day month weekday), one of {presets}, or null")
    if not expression.isascii() or _DRAWN.search(expression):
        raise ValueError(f"{expression!r} is not a schedule: write numbers, names of months and days, and * , - / # L")
    try:
        moments = croniter(expression, _ANY_LEAP_YEAR)
    except CroniterError as error:
        raise ValueError(f"{expression!r} is not a schedule: {error}") from error
    try:
        moments.get_next(datetime)
    except CroniterError as error:
        raise ValueError(f"the schedule {expression!r} never occurs: no such day in these months") from error
    return expression


def intervals(expression: str, first: datetime, last: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yields the intervals of a schedule that start between two moments, both included.

    `check` accepts the expression; `first` and `last` are in the time zone of the schedule.
    """
    moments = times_after(expression, first - timedelta(microseconds=1))
    start = next(moments)
    while start <= last:
        end = next(moments)
        yield start, end
        start = end


def times_after(expression: str, moment: datetime) -> Iterator[datetime]:
    """Yields without end the times of a schedule that `check` accepts, those after a moment in its time zone."""
    moments = croniter(PRESETS.get(expression, expression), moment)
    while True:
        at: datetime = moments.get_next(datetime)
        yield at


def describe_schedule(expression: str) -> str:
    """Returns the schedule in words: "At 06:00, Monday through Friday". By date or by weekday where it has both.

    An expression that the library of words does not know, and Airflow does, describes itself.
    """
    fields = PRESETS.get(expression, expression).split()
    try:
        if fields[2] == "*" or fields[4] == "*":
            return _words(fields)
        by_weekday = _words([*fields[:2], "*", *fields[3:]])
        return f"{_words([*fields[:4], '*'])}, or {by_weekday[0].lower()}{by_weekday[1:]}"
    except (FormatException, WrongArgumentException, ValueError):
        return expression


def _words(fields: list[str]) -> str:
    options = Options()
    options.use_24hour_time_format = True
    return str(ExpressionDescriptor(" ".join(fields), options).get_description())
