"""Types of attributes, run after run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.records.changes import attribute_types
from contexture.records.changes.attribute_types import AttributeType, AttributeTypes

NUMBER = AttributeType("car", "speed", "Number")
INTEGER = AttributeType("car", "speed", "Integer")
COLOUR = AttributeType("car", "colour", "Text")

words = st.sampled_from(["a", "b", "c"])
triples = st.lists(st.builds(AttributeType, words, words, words))


def test_only_a_known_attribute_can_drift() -> None:
    known = AttributeTypes.of([NUMBER])

    assert known.new_in(AttributeTypes.of([NUMBER, INTEGER, COLOUR, AttributeType("bus", "speed", "Text")])) == [
        INTEGER
    ]
    assert AttributeTypes().new_in(AttributeTypes.of([NUMBER])) == []


def test_after_a_whole_read_only_what_is_there_counts() -> None:
    known = AttributeTypes.of([NUMBER, COLOUR])
    seen = AttributeTypes.of([INTEGER])

    assert known.after(seen, whole=True) == AttributeTypes.of([INTEGER, COLOUR])
    assert known.after(seen, whole=False) == AttributeTypes.of([NUMBER, INTEGER, COLOUR])
    assert known.after(seen, whole=False).new_in(AttributeTypes.of([NUMBER])) == []


@given(triples)
def test_json_keeps_everything_in_one_order(seen: list[AttributeType]) -> None:
    types = AttributeTypes.of(seen)

    assert AttributeTypes.from_json(types.to_json()) == types
    assert types.to_json() == AttributeTypes.of(reversed(seen)).to_json()


@given(triples, triples)
def test_what_a_run_saw_is_never_new_to_the_next(known: list[AttributeType], seen: list[AttributeType]) -> None:
    now = AttributeTypes.of(seen)

    for whole in (True, False):
        assert AttributeTypes.of(known).after(now, whole=whole).new_in(now) == []


def test_attributes_that_are_named_after_data_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute_types, "MOST", 2)

    assert AttributeTypes.of([NUMBER, NUMBER, COLOUR]).types != {}
    assert AttributeTypes.of([NUMBER, INTEGER, COLOUR]) == AttributeTypes()
