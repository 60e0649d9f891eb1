"""Batches and sub-batches: which events are sent together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contexture.errors import ConfigurationError

Integers = npt.NDArray[np.int64]

_MICROSECONDS = 1_000_000


def batch_starts(received_at_us: Integers, batch_size: int, batch_timeout_seconds: float) -> Integers:
    """Returns the position of the first event of every batch.

    A batch is closed when it holds `batch_size` events, or when the next event was received more than
    `batch_timeout_seconds` after the batch's first.

    Args:
        received_at_us: when each event was received, microseconds since 1970, in arrival order.
        batch_size: events in a batch, at least 1.
        batch_timeout_seconds: how long a batch stays open, above 0.

    Raises:
        ConfigurationError: size or time-out isn't positive.
    """
    if batch_size < 1 or batch_timeout_seconds <= 0:
        raise ConfigurationError(
            f"batch_size {batch_size} and batch_timeout {batch_timeout_seconds} must both be positive",
            next_step="correct batches.batch_size and batches.batch_timeout",
        )
    times = np.ascontiguousarray(received_at_us, dtype=np.int64)
    regular = np.arange(0, len(times), batch_size, dtype=np.int64)
    timeout_us = round(batch_timeout_seconds * _MICROSECONDS)
    if batch_size == 1 or _no_timeout_bites(times, regular, timeout_us):
        return regular
    if np.all(times[1:] >= times[:-1]):
        return _starts_of_ordered(times, batch_size, timeout_us)
    return _starts_of_unordered(times, batch_size, timeout_us)


def batch_numbers(starts: Integers, events: int) -> Integers:
    """Returns the number of each event's batch, counted from 0; `starts` as `batch_starts` returns them."""
    sizes = np.diff(starts, append=events)
    return np.repeat(np.arange(len(starts), dtype=np.int64), sizes)


def _no_timeout_bites(times: Integers, starts: Integers, timeout_us: int) -> bool:
    if not len(times):
        return True
    return bool(np.all(np.maximum.reduceat(times, starts) - times[starts] <= timeout_us))


def _starts_of_ordered(times: Integers, batch_size: int, timeout_us: int) -> Integers:
    # In one call for every event: where the next batch would begin if one began here. Only the real ones are followed.
    too_late = np.searchsorted(times, times + timeout_us, side="right")
    following = np.minimum(too_late, np.arange(batch_size, len(times) + batch_size)).tolist()
    starts, position, end = [], 0, len(following)
    while position < end:
        starts.append(position)
        position = following[position]
    return np.array(starts, dtype=np.int64)


def _starts_of_unordered(times: Integers, batch_size: int, timeout_us: int) -> Integers:
    starts, position, end = [], 0, len(times)
    while position < end:
        starts.append(position)
        late = times[position : position + batch_size] > times[position] + timeout_us
        first_late = int(late.argmax())
        position += first_late or batch_size
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SubBatchPlan:
    """The batches and sub-batches of events, and their order.

    Attributes:
        batch: the batch of each event, counted from 0.
        sub_batch: the sub-batch of each event within its batch, counted from 0 in order of first arrival.
        order: the positions of the events by batch, then sub-batch, then arrival.
    """

    batch: Integers
    sub_batch: Integers
    order: Integers


def plan_sub_batches(
    received_at_us: Integers, destination: Integers, *, batch_size: int, batch_timeout_seconds: float
) -> SubBatchPlan:
    """Returns the sub-batches of events in arrival order; parameters as of `batch_starts` and `sub_batch_numbers`."""
    starts = batch_starts(received_at_us, batch_size, batch_timeout_seconds)
    batch = batch_numbers(starts, len(received_at_us))
    sub_batch = sub_batch_numbers(batch, destination)
    return SubBatchPlan(batch, sub_batch, np.lexsort((sub_batch, batch)).astype(np.int64))


def sub_batch_numbers(batch: Integers, destination: Integers) -> Integers:
    """Returns the sub-batch of each event within its batch, counted from 0 in order of first arrival.

    Args:
        batch: each event's batch, never falling.
        destination: a number for each event's destination, 0 or above.
    """
    if not len(batch):
        return np.empty(0, dtype=np.int64)
    pairs = np.asarray(batch, dtype=np.int64) * (int(destination.max()) + 1) + destination
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    by_arrival = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[by_arrival] = np.arange(len(first))
    # The ranks continue through all batches; a batch's first rank is the one of its first event.
    ranks: Integers = rank[which]
    opens = np.flatnonzero(np.diff(batch, prepend=batch[0] - 1))
    return ranks - np.repeat(ranks[opens], np.diff(opens, append=len(batch)))
