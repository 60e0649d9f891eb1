"""Retry schedules as users of Cygnus know them, the endless one as its documentation says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.storage.delivery import RetrySchedule


def delays_of(batch_ttl: int, intervals: Sequence[int], most: int = 50) -> list[int]:
    """The waits of a schedule, in order; of an endless one the first."""
    schedule = RetrySchedule(batch_ttl, tuple(intervals))
    waits = (schedule.delay_after(failed) for failed in range(1, most + 1))
    return [wait for wait in waits if wait is not None]


INTERVALS = st.lists(st.integers(1, 10_000), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("batch_ttl", "intervals", "delays"),
    [
        (0, (5000,), []),
        (10, (5000,), [5000] * 10),
        (2, (1000, 2000, 3000), [1000, 2000]),
        (5, (1000, 2000, 3000), [1000, 2000, 3000, 3000, 3000]),
    ],
)
def test_the_last_interval_is_repeated(batch_ttl: int, intervals: tuple[int, ...], delays: list[int]) -> None:
    assert delays_of(batch_ttl, intervals) == delays


def test_the_defaults_of_cygnus_bridge_fifty_seconds() -> None:
    assert sum(delays_of(10, (5000,))) == 50_000


@pytest.mark.parametrize(
    ("batch_ttl", "attempts", "waits"),
    [
        (0, 1, [None, None]),
        (1, 2, [1000, None]),
        (3, 4, [1000, 2000, 2000, None]),
        (-1, None, [1000, 2000, 2000, 2000]),
    ],
)
def test_n_retries_are_one_more_attempt(batch_ttl: int, attempts: int | None, waits: list[int | None]) -> None:
    schedule = RetrySchedule(batch_ttl, (1000, 2000))
    assert schedule.attempts == attempts
    assert [schedule.delay_after(failed) for failed in range(1, len(waits) + 1)] == waits


def test_for_ever_goes_along_the_list_and_then_stays_at_its_last_interval() -> None:
    assert delays_of(-1, (1000, 2000), most=5) == [1000, 2000, 2000, 2000, 2000]


@given(st.integers(0, 20), INTERVALS)
def test_there_are_as_many_retries_as_the_ttl_says_and_they_begin_as_the_endless_ones(
    batch_ttl: int, intervals: list[int]
) -> None:
    delays = delays_of(batch_ttl, intervals)
    assert len(delays) == batch_ttl
    assert delays == delays_of(-1, intervals, most=batch_ttl)


@pytest.mark.parametrize(("batch_ttl", "intervals"), [(-2, (5000,)), (1, ()), (1, (0,)), (-1, (1000, -5))])
def test_what_is_no_schedule_is_a_configuration_error(batch_ttl: int, intervals: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError):
        RetrySchedule(batch_ttl, intervals)


def test_an_endless_schedule_has_no_number_of_attempts_and_always_a_next_one() -> None:
    schedule = RetrySchedule(-1, (1000, 2000))
    assert schedule.attempts is None
    assert [schedule.delay_after(failed) for failed in (1, 2, 3, 1_000_000)] == [1000, 2000, 2000, 2000]
