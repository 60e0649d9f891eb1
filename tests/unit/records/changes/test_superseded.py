"""Objects of a snapshot that a later version of the same entity supersedes."""

from __future__ import annotations

from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.comparing import at, hashed
from contexture.records.changes import ChangeKind, superseded_rows

SCHEMA = pa.schema(
    [
        ("verdict", pa.int32()),
        ("entity_hash", pa.binary(16)),
        ("entity_modified_at", pa.timestamp("us", tz="UTC")),
        ("notified", pa.bool_()),
        ("identified", pa.bool_()),
    ]
)
Object = tuple[str, int | None, int]
"""An entity, the minute of its last change, and how many rows (attributes) the object has."""


def rows_of(
    objects: list[Object], *, verdict: ChangeKind = ChangeKind.SEND, notified: bool = False, named: bool = True
):
    numbers = [number for number, (_, _, parts) in enumerate(objects) for _ in range(parts)]
    rows = [
        {
            "verdict": int(verdict),
            "entity_hash": hashed(entity),
            "entity_modified_at": at(minute),
            "notified": notified,
            "identified": named,
        }
        for entity, minute, parts in objects
        for _ in range(parts)
    ]
    return superseded_rows(pa.Table.from_pylist(rows, schema=SCHEMA), np.array(numbers, dtype=np.int64)).tolist()


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ([("a", 1, 1), ("b", 1, 1)], []),
        ([("a", 1, 1), ("b", 1, 1), ("a", 2, 1)], [0]),
        ([("a", 2, 1), ("a", 1, 1), ("a", 3, 1)], [0, 1]),
        ([("a", 1, 1), ("a", 1, 1)], []),
        ([("a", None, 1), ("a", 1, 1)], [0]),
        ([("a", None, 1), ("a", None, 1)], []),
        ([("a", 1, 3), ("b", 1, 2), ("a", 2, 2)], [0, 1, 2]),
        ([("a", 2, 2), ("a", 1, 3)], [2, 3, 4]),
        ([], []),
    ],
)
def test_all_rows_of_an_object_go_when_its_entity_was_changed_later(objects: list[Object], found: list[int]):
    assert rows_of(objects) == found


def test_refused_versions_are_superseded_and_supersede():
    assert rows_of([("a", 1, 1), ("a", 2, 1)], verdict=ChangeKind.QUARANTINED) == [0]


@pytest.mark.parametrize(
    "options",
    [{"verdict": ChangeKind.PRESENT}, {"verdict": ChangeKind.DELETE}, {"notified": True}, {"named": False}],
)
def test_sightings_notifications_and_objects_without_an_id_supersede_nothing(options: dict[str, object]):
    assert rows_of([("a", 1, 1), ("a", 2, 1)], **options) == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, 0, 1, 2]), st.integers(1, 3)), max_size=8))
def test_exactly_the_newest_versions_of_every_entity_stay(objects: list[Object]):
    gone, number = set(rows_of(objects)), count()
    newest = {entity: max(-1 if m is None else m for e, m, _ in objects if e == entity) for entity, _, _ in objects}
    for entity, minute, parts in objects:
        is_newest = (-1 if minute is None else minute) == newest[entity]
        assert all((next(number) in gone) is not is_newest for _ in range(parts))
