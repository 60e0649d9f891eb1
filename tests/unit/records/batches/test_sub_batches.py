"""Sub-batches: the events of a batch for one destination, in order of first arrival."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contexture.records.batches import plan_sub_batches, sub_batch_numbers

SECOND = 1_000_000


def slow_numbers(batches: list[int], destinations: list[int]) -> list[int]:
    seen: dict[int, dict[int, int]] = {}
    numbers = []
    for batch, destination in zip(batches, destinations, strict=True):
        of_batch = seen.setdefault(batch, {})
        numbers.append(of_batch.setdefault(destination, len(of_batch)))
    return numbers


def test_sub_batches_are_numbered_by_first_arrival_in_each_batch() -> None:
    batch = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    destination = np.array([7, 3, 7, 0, 3, 3, 7, 7])
    assert sub_batch_numbers(batch, destination).tolist() == [0, 1, 0, 2, 0, 0, 1, 0]


def test_no_events_have_no_sub_batches() -> None:
    assert sub_batch_numbers(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []


def test_a_plan_orders_events_by_batch_then_sub_batch_then_arrival() -> None:
    times = np.array([0, 1, 2, 3, 50, 51], dtype=np.int64) * SECOND
    destination = np.array([5, 6, 5, 6, 6, 5])
    planned = plan_sub_batches(times, destination, batch_size=3, batch_timeout_seconds=30)
    assert planned.batch.tolist() == [0, 0, 0, 1, 2, 2]
    assert planned.sub_batch.tolist() == [0, 1, 0, 0, 0, 1]
    assert planned.order.tolist() == [0, 2, 1, 3, 4, 5]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4)), max_size=80), st.integers(1, 10), st.integers(1, 20))
def test_a_plan_loses_nothing_and_keeps_the_order_of_each_destination(
    events: list[tuple[int, int]], batch_size: int, timeout: int
) -> None:
    times = np.array([time for time, _ in events], dtype=np.int64) * SECOND
    destination = np.array([destination for _, destination in events], dtype=np.int64)
    planned = plan_sub_batches(times, destination, batch_size=batch_size, batch_timeout_seconds=timeout)
    assert sorted(planned.order.tolist()) == list(range(len(events)))
    assert planned.sub_batch.tolist() == slow_numbers(planned.batch.tolist(), destination.tolist())
    for each in range(5):
        sent = [position for position in planned.order.tolist() if destination[position] == each]
        assert sent == sorted(sent)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4)), max_size=40))
def test_equal_events_have_equal_plans(events: list[tuple[int, int]]) -> None:
    def planned() -> list[list[int]]:
        times = np.array([time for time, _ in events], dtype=np.int64) * SECOND
        destination = np.array([destination for _, destination in events], dtype=np.int64)
        made = plan_sub_batches(times, destination, batch_size=7, batch_timeout_seconds=10)
        return [made.batch.tolist(), made.sub_batch.tolist(), made.order.tolist()]

    assert planned() == planned()
