"""Times are stored finer than shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture_sandbox.context_broker.times import Clock, instant, microseconds, parse_time, shown

MOMENTS = st.integers(min_value=0, max_value=4_000_000_000_000_000)


@given(MOMENTS)
def test_what_is_shown_is_the_stored_time_cut_to_milliseconds(moment: int) -> None:
    assert parse_time(shown(moment)) == moment - moment % 1000


@given(MOMENTS)
def test_an_instant_is_its_microseconds(moment: int) -> None:
    assert microseconds(instant(moment)) == moment


def test_the_clock_never_shows_a_whole_millisecond_and_always_moves() -> None:
    clock = Clock()
    moments = [clock.now() for _ in range(5000)]

    assert all(moment % 1000 for moment in moments)
    assert sorted(set(moments)) == moments


def test_a_frozen_clock_shows_one_time_until_it_is_moved() -> None:
    clock = Clock()
    clock.freeze(datetime(2026, 1, 1, tzinfo=UTC))

    assert [shown(clock.now()), shown(clock.now())] == ["2026-01-01T00:00:00.000Z"] * 2
    clock.advance(1.5)
    assert shown(clock.now()) == "2026-01-01T00:00:01.500Z"
    clock.resume()
    assert clock.now() > microseconds(datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2016-11-30T07:00:00.00Z", "2016-11-30T07:00:00.000Z"),
        ("2021-03-11T15:51:02+05:30", "2021-03-11T10:21:02.000Z"),
        ("2016-11-30T07:00:00", "2016-11-30T07:00:00.000Z"),
        ("2016-11-30", "2016-11-30T00:00:00.000Z"),
    ],
)
def test_times_are_understood_as_orion_does(text: str, expected: str) -> None:
    moment = parse_time(text)
    assert moment is not None
    assert shown(moment) == expected


@pytest.mark.parametrize(
    "text", ["not a date", "2016-12-07T11:10:00/2016-12-07T11:15:00", "20161130", "2016-13-01", ""]
)
def test_other_texts_are_no_times(text: str) -> None:
    assert parse_time(text) is None
