"""Topics that several identities share although each should have its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def numbered(values: Sequence[Hashable]) -> Integers:
    """A number for each value; equal values have equal numbers."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def as_brokers_compare(topic: str) -> str:
    """What is equal for topics that can't both exist: Kafka's metrics don't tell `.` from `_`."""
    return topic.replace(".", "_")


def colliding(topics: Integers, meanings: Integers) -> npt.NDArray[np.bool_]:
    """Whether each event's topic is that of another meaning too.

    Args:
        topics: a number for each event's topic; number `as_brokers_compare`, so that creatable topics remain.
        meanings: a number for what each name is made of (`TopicNamer.parts`).
    """
    if not len(topics):
        return np.zeros(0, dtype=np.bool_)
    order = np.lexsort((meanings, topics))
    topic, meaning = topics[order], meanings[order]
    starts = np.flatnonzero(np.concatenate(([True], topic[1:] != topic[:-1])))
    sizes = np.diff(np.append(starts, len(topic)))
    # Meanings are sorted within a topic, so its first and last differ when any two do.
    shared = np.repeat(meaning[starts] != meaning[starts + sizes - 1], sizes)
    found = np.empty(len(topics), dtype=np.bool_)
    found[order] = shared
    return found
