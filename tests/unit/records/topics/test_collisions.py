"""Collisions of topics: what shares a topic without identity the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contexture.records.topics.collisions import mark_collisions, metric_name, number_values


def test_equal_values_have_equal_numbers() -> None:
    assert number_values(["b", "a", "b"]).tolist() == [0, 1, 0]


def test_only_topics_of_several_identities_collide() -> None:
    topics = number_values(["t", "u", "t", "v", "v"])
    identities = number_values(["a=b,c", "car", "a,b=c", "bus", "bus"])
    assert mark_collisions(topics, identities).tolist() == [True, False, True, False, False]
    assert mark_collisions(number_values([]), number_values([])).tolist() == []


def test_brokers_do_not_distinguish_a_dot_from_an_underscore() -> None:
    assert metric_name("a.b_c") == "a_b_c"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3))))
def test_an_event_collides_when_its_topic_has_another_identity(events: list[tuple[int, int]]) -> None:
    expected = [any(other[0] == topic and other[1] != identity for other in events) for topic, identity in events]
    found = mark_collisions(
        number_values([topic for topic, _ in events]), number_values([identity for _, identity in events])
    )
    assert found.tolist() == expected
