"""Histories of keys, and what a topic holds after them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from contexture.events import content_hash, parse_json
from contexture.operations.verification.comparison import ExpectedHashes, KeyedComparison, ReadRecord

TOPIC = "cars"


class Change(NamedTuple):
    """One event: a key gets a content, or is deleted (None), in the run of a sequence."""

    key: str
    content: str | None
    sequence: int


def value(content: str) -> bytes:
    """A record's value."""
    return f'{{"speed":"{content}"}}'.encode()


def content_of(value: bytes) -> bytes:
    """The content hash of a value."""
    return content_hash(parse_json(value))


def histories(smallest: int = 0) -> st.SearchStrategy[list[Change]]:
    """Any sequence of upserts and deletions; sequences rise."""
    keys, contents = st.sampled_from("abcdef"), st.one_of(st.none(), st.sampled_from(["1", "2", "3"]))
    steps = st.lists(st.tuples(keys, contents, st.integers(0, 1)), min_size=smallest, max_size=30)
    return steps.map(_numbered)


def records(changes: Iterable[Change], partitions: int = 2) -> list[ReadRecord]:
    """The records of a history, as a reader gets them."""
    return [
        ReadRecord(
            TOPIC,
            ord(change.key) % partitions,
            change.key.encode(),
            None if change.content is None else value(change.content),
        )
        for change in changes
    ]


def held(changes: Iterable[Change]) -> list[ExpectedHashes]:
    """What the keys hold after a history."""
    last = {change.key: change for change in changes}
    return [
        ExpectedHashes(
            TOPIC, each.key.encode(), f'["{each.key}"]'.encode(), content_of(value(each.content)), each.sequence
        )
        for each in last.values()
        if each.content is not None
    ]


def compared(
    changes: Sequence[Change],
    found: Iterable[ReadRecord],
    *,
    archived: Callable[[int], bool] = lambda sequence: True,
    reads_content: bool = True,
) -> KeyedComparison:
    """A history compared with what lies in its topic, by outboxes that are archived, and by content."""
    comparison = KeyedComparison(sqlite3.connect(":memory:"), content_of if reads_content else None)
    comparison.expect(held(changes))
    for sequence in {change.sequence for change in changes}:
        if archived(sequence):
            mine = [change for change in changes if change.sequence == sequence]
            comparison.sent(sequence, [(each.topic, each.key, each.value) for each in records(mine)])
    comparison.observe(found)
    return comparison


def _numbered(steps: list[tuple[str, str | None, int]]) -> list[Change]:
    changes, sequence = [], 1
    for key, content, later in steps:
        sequence += later
        changes.append(Change(key, content, sequence))
    return changes
