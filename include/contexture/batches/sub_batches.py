"""Sub-batches: the events of a batch that go to one destination."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contexture.batches.boundaries import Integers, batch_numbers, batch_starts


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Which events are sent together, and in which order.

    Attributes:
        batch: the batch of each event, counted from 0.
        sub_batch: the sub-batch of each event within its batch, counted from 0 in order of first arrival.
        order: the positions of the events by batch, then sub-batch, then arrival.
    """

    batch: Integers
    sub_batch: Integers
    order: Integers


def plan(received_at_us: Integers, destination: Integers, *, batch_size: int, batch_timeout_seconds: float) -> Plan:
    """The batches and sub-batches of events in arrival order.

    Args:
        received_at_us: when each event was received, microseconds since 1970.
        destination: a number for each event's destination; equal numbers are one destination.
        batch_size: events in a batch.
        batch_timeout_seconds: how long a batch stays open.

    Raises:
        ConfigurationError: size or time-out isn't positive.
    """
    starts = batch_starts(received_at_us, batch_size, batch_timeout_seconds)
    batch = batch_numbers(starts, len(received_at_us))
    sub_batch = sub_batch_numbers(batch, destination)
    return Plan(batch, sub_batch, np.lexsort((sub_batch, batch)).astype(np.int64))


def sub_batch_numbers(batch: Integers, destination: Integers) -> Integers:
    """The sub-batch of each event within its batch, counted from 0 in order of first arrival.

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
    # The ranks count on through all batches; a batch's first rank is the one of its first event.
    ranks: Integers = rank[which]
    opens = np.flatnonzero(np.diff(batch, prepend=batch[0] - 1))
    return ranks - np.repeat(ranks[opens], np.diff(opens, append=len(batch)))
