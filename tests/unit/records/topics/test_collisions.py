"""Collisions of topics: what shares a topic without meaning the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contexture.records.topics.collisions import colliding, metric_name, numbered


def test_equal_values_have_equal_numbers() -> None:
    assert numbered(["b", "a", "b"]).tolist() == [0, 1, 0]


def test_only_topics_of_several_meanings_collide() -> None:
    topics = numbered(["t", "u", "t", "v", "v"])
    meanings = numbered(["a=b,c", "car", "a,b=c", "bus", "bus"])
    assert colliding(topics, meanings).tolist() == [True, False, True, False, False]
    assert colliding(numbered([]), numbered([])).tolist() == []


def test_brokers_do_not_tell_a_dot_from_an_underscore() -> None:
    assert metric_name("a.b_c") == "a_b_c"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3))))
def test_an_event_collides_when_its_topic_has_another_meaning(events: list[tuple[int, int]]) -> None:
    expected = [any(other[0] == topic and other[1] != meaning for other in events) for topic, meaning in events]
    found = colliding(numbered([topic for topic, _ in events]), numbered([meaning for _, meaning in events]))
    assert found.tolist() == expected
