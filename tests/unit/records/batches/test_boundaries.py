"""Where batches begin: literal cases, and the laws every plan keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.records.batches import batch_numbers, batch_starts

SECOND = 1_000_000


def starts_of(seconds: list[float], batch_size: int, timeout: float = 30) -> list[int]:
    times = np.array([round(second * SECOND) for second in seconds], dtype=np.int64)
    return batch_starts(times, batch_size, timeout).tolist()


def slow_starts(times: list[int], batch_size: int, timeout_us: int) -> list[int]:
    """Event by event, as the definition says."""
    starts: list[int] = []
    for position, time in enumerate(times):
        if not starts or position - starts[-1] == batch_size or time - times[starts[-1]] > timeout_us:
            starts.append(position)
    return starts


TIMES = st.lists(st.integers(0, 40), max_size=60)
EVENTS = TIMES.map(sorted) | TIMES


@pytest.mark.parametrize(
    ("seconds", "batch_size", "starts"),
    [
        ([], 3, []),
        ([5], 3, [0]),
        ([0, 0, 0, 0], 1, [0, 1, 2, 3]),
        ([0, 0, 0, 0], 2, [0, 2]),
        ([0, 0, 0, 0, 0], 2, [0, 2, 4]),
        ([0, 10, 20, 30, 40], 100, [0, 4]),
        ([0, 10, 30, 30.000001, 60], 100, [0, 3]),
        ([0, 1, 40, 41, 42, 43], 3, [0, 2, 5]),
        ([0, 100, 200], 10, [0, 1, 2]),
        ([40, 0, 71, 10], 10, [0, 2]),
    ],
)
def test_a_batch_is_closed_by_size_or_by_a_late_event(seconds: list[float], batch_size: int, starts: list[int]) -> None:
    assert starts_of(seconds, batch_size) == starts


def test_an_event_exactly_at_the_time_out_still_belongs_to_the_batch() -> None:
    assert starts_of([0, 0.5], 10, timeout=0.5) == [0]
    assert starts_of([0, 0.500001], 10, timeout=0.5) == [0, 1]


@given(EVENTS, st.integers(1, 12), st.integers(1, 30))
def test_batches_begin_where_the_definition_says(seconds: list[int], batch_size: int, timeout: int) -> None:
    times = [second * SECOND for second in seconds]
    starts = batch_starts(np.array(times, dtype=np.int64), batch_size, timeout)
    assert starts.tolist() == slow_starts(times, batch_size, timeout * SECOND)


@given(EVENTS, st.integers(1, 12), st.integers(1, 30))
def test_every_event_is_in_one_batch_in_order_and_none_is_too_large(
    seconds: list[int], batch_size: int, timeout: int
) -> None:
    times = np.array(seconds, dtype=np.int64) * SECOND
    starts = batch_starts(times, batch_size, timeout)
    numbers = batch_numbers(starts, len(times))
    assert len(numbers) == len(seconds)
    assert (np.diff(numbers) >= 0).all()
    assert len(numbers) == 0 or np.bincount(numbers).max() <= batch_size
    for number in set(numbers.tolist()):
        batch = times[numbers == number]
        assert batch.max() - batch[0] <= timeout * SECOND


@pytest.mark.parametrize(("batch_size", "timeout"), [(0, 30), (-1, 30), (1, 0), (1, -1)])
def test_sizes_and_time_outs_must_be_positive(batch_size: int, timeout: int) -> None:
    with pytest.raises(ConfigurationError):
        batch_starts(np.array([0], dtype=np.int64), batch_size, timeout)
