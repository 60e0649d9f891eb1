"""The intervals of a schedule: those of Airflow's timetable."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from contexture.publications.schedule import PRESETS, check, intervals

FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/5", "7,52", "10-20/3"]),
    st.sampled_from(["*", "0", "*/6", "9-17", "23"]),
    st.sampled_from(["*", "1", "*/2", "31", "10-12"]),
    st.sampled_from(["*", "1", "*/3", "feb", "11,12"]),
    st.sampled_from(["*", "0", "7", "mon-fri", "sat"]),
).map(" ".join)
MOMENTS = st.integers(0, 2 * 365 * 1440).map(lambda minutes: at("2025-01-01T00:00") + timedelta(minutes=minutes))


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def test_both_ends_are_starts_of_intervals() -> None:
    assert list(intervals("*/20 * * * *", at("2026-11-20T08:00"), at("2026-11-20T08:40"))) == [
        (at("2026-11-20T08:00"), at("2026-11-20T08:20")),
        (at("2026-11-20T08:20"), at("2026-11-20T08:40")),
        (at("2026-11-20T08:40"), at("2026-11-20T09:00")),
    ]


def test_an_interval_reaches_to_the_next_start_however_far_that_is() -> None:
    found = list(intervals("0 0 29 2 *", at("2096-01-01T00:00"), at("2096-12-31T00:00")))
    assert found == [(at("2096-02-29T00:00"), at("2104-02-29T00:00"))]


def test_a_range_without_a_start_has_no_interval() -> None:
    assert list(intervals("@daily", at("2026-11-20T08:00"), at("2026-11-20T23:59"))) == []


@pytest.mark.parametrize(
    ("preset", "first", "end"),
    [
        ("@hourly", "2026-11-20T08:00", "2026-11-20T09:00"),
        ("@daily", "2026-11-21T00:00", "2026-11-22T00:00"),
        ("@weekly", "2026-11-22T00:00", "2026-11-29T00:00"),
        ("@monthly", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("@quarterly", "2027-01-01T00:00", "2027-04-01T00:00"),
        ("@yearly", "2027-01-01T00:00", "2028-01-01T00:00"),
    ],
)
def test_presets_have_intervals_too(preset: str, first: str, end: str) -> None:
    found = intervals(preset, at("2026-11-20T08:00"), at("2027-11-20T08:00"))
    assert (preset in PRESETS, next(found)) == (True, (at(first), at(end)))


@given(FIELDS, MOMENTS, st.integers(0, 40))
def test_they_are_those_of_airflows_own_library(expression: str, first: datetime, days: int) -> None:
    try:
        check(expression)
    except ValueError:
        return
    last = first + timedelta(days=days)
    times = croniter(expression, first - timedelta(microseconds=1), ret_type=datetime)
    starts = [times.get_next(datetime)]
    while starts[-1] <= last and len(starts) < 60:
        starts.append(times.get_next(datetime))
    expected = [(start, end) for start, end in pairwise(starts) if start <= last]
    assert [pair for pair, _ in zip(intervals(expression, first, last), expected, strict=False)] == expected
