"""Notifications are told one after the other: what repeats its predecessor is left out, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.comparing import Held, Told, snapshot, state
from contexture.records.changes import ChangeKind, compare, find_superseded_notifications, replay_sequence


def notified(identity: str, content: str = "new", verdict: ChangeKind = ChangeKind.SEND) -> Told:
    return Told(identity, verdict, content, None, notified=True)


def gone(identity: str) -> Told:
    return Told(identity, ChangeKind.DELETE, None, None, notified=True)


def refused(identity: str, *, notified: bool = True) -> Told:
    return Told(identity, ChangeKind.QUARANTINED, None, None, notified=notified)


def read(identity: str, content: str = "new", verdict: ChangeKind = ChangeKind.SEND) -> Told:
    return Told(identity, verdict, content)


def found(told: list[Told], held: list[Held], **options: Any) -> dict[str, list[Any]]:
    """Row numbers by what becomes of them; a deletion as the row that tells it, and what it ends."""
    judged = replay_sequence(snapshot(told), state(held), **options)
    deletions = [
        (each.row, told[each.before.row].identity if each.before.held is None else held[each.before.held].identity)
        for each in judged.deletions
    ]
    names = ("sent", "unchanged", "final")
    lists = {name: getattr(judged, name).tolist() for name in names if len(getattr(judged, name))}
    return {**lists, "deletions": deletions} if deletions else lists


@pytest.mark.parametrize(
    ("told", "held", "expected"),
    [
        ([notified("car1", "a")], [], {"sent": [0], "final": [0]}),
        ([notified("car1", "a")], [Held("car1", content="a")], {"unchanged": [0]}),
        ([notified("car1", "b")], [Held("car1", content="a")], {"sent": [0], "final": [0]}),
        ([notified("car1", "b"), notified("car1", "b")], [], {"sent": [0], "unchanged": [1], "final": [0]}),
        ([notified("car1", "a"), notified("car1", "b"), notified("car1", "a")], [], {"sent": [0, 1, 2], "final": [2]}),
        # The last one equals state, but what was told just before it does not.
        ([notified("car1", "b"), notified("car1", "a")], [Held("car1", content="a")], {"sent": [0, 1], "final": [1]}),
        # What was refused was not told, so it is nobody's predecessor.
        (
            [notified("car1", "b"), refused("car1"), notified("car1", "b")],
            [],
            {"sent": [0], "unchanged": [2], "final": [0]},
        ),
        ([notified("car1", "b"), notified("car2", "b")], [], {"sent": [0, 1], "final": [0, 1]}),
    ],
)
def test_an_event_is_sent_unless_it_repeats_its_predecessor(told, held, expected) -> None:
    assert found(told, held) == expected


@pytest.mark.parametrize(
    ("told", "held", "expected"),
    [
        ([gone("car1")], [Held("car1")], {"deletions": [(0, "car1")]}),
        ([gone("car1")], [], {"unchanged": [0]}),
        ([gone("car1"), gone("car1")], [Held("car1")], {"unchanged": [1], "deletions": [(0, "car1")]}),
        ([notified("car1"), gone("car1")], [], {"sent": [0], "deletions": [(1, "car1")]}),
        (
            [gone("car1"), notified("car1", "old")],
            [Held("car1", content="old")],
            {"sent": [1], "final": [1], "deletions": [(0, "car1")]},
        ),
        # All that is known of the entity goes, whether state or an earlier event told it.
        (
            [notified("car1.oil"), gone("car1")],
            [Held("car1.speed"), Held("car2.speed")],
            {"sent": [0], "deletions": [(1, "car1.speed"), (1, "car1.oil")]},
        ),
    ],
)
def test_a_deletion_ends_what_was_told_of_the_entity_before(told, held, expected) -> None:
    assert found(told, held) == expected


def test_without_deletions_the_target_keeps_what_it_has() -> None:
    told = [gone("car1"), notified("car1", "old")]
    assert found(told, [Held("car1")], deletes=False) == {"unchanged": [0, 1]}


def test_an_attribute_that_was_not_notified_is_not_taken_for_gone() -> None:
    held = [Held("car1.speed"), Held("car1.oil")]
    told = [notified("car1.speed")]
    assert found(told, held) == {"sent": [0], "final": [0]}
    assert compare(snapshot(told), state(held), proves_absence=False).removed.tolist() == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([notified("car1", "b"), read("car1", "b")], {"sent": [0], "unchanged": [1], "final": [0]}),
        # It equals state, and still has to follow on what was notified.
        ([notified("car1", "b"), read("car1", "old", ChangeKind.UNCHANGED)], {"sent": [0, 1], "final": [1]}),
        (
            [gone("car1"), read("car1", "old", ChangeKind.UNCHANGED)],
            {"sent": [1], "final": [1], "deletions": [(0, "car1")]},
        ),
    ],
)
def test_what_was_read_follows_on_what_was_notified(told, expected) -> None:
    assert found(told, [Held("car1")]) == expected


def test_a_full_run_sends_what_was_read_again() -> None:
    told = [notified("car1", "b"), notified("car1", "b"), read("car1", "b")]
    assert found(told, [], resend=True) == {"sent": [0, 2], "unchanged": [1], "final": [2]}
    assert found(told, [], resend=True, resend_notified=True) == {"sent": [0, 1, 2], "final": [2]}


def test_entities_that_were_not_notified_are_not_looked_at() -> None:
    told = [read("car1", "old"), notified("car2"), read("car3")]
    assert replay_sequence(snapshot(told), state([Held("car1")])).evaluated.tolist() == [1]


def test_an_attribute_that_was_notified_and_then_not_read_is_gone_in_the_end() -> None:
    told = [notified("car1.speed"), notified("car1.oil"), read("car1.speed")]
    assert found(told, []) == {"sent": [0, 1], "unchanged": [2], "final": [0], "deletions": [(None, "car1.oil")]}
    repeated = [notified("car1.oil", "old"), read("car1.speed")]
    assert found(repeated, [Held("car1.oil")]) == {
        "sent": [1],
        "unchanged": [0],
        "final": [1],
        "deletions": [(None, "car1.oil")],
    }


@pytest.mark.parametrize("hidden", [refused("car1.oil", notified=False), read("car1.oil", "contradicts")])
def test_what_was_refused_or_contradicted_is_not_taken_for_gone(hidden: Told) -> None:
    told = [notified("car1.oil"), hidden, read("car1.speed")]
    left_out = [1] if hidden.verdict == ChangeKind.SEND else []
    assert found(told, [], left_out=left_out) == {"sent": [0, 2], "final": [0, 2]}


def test_only_the_last_notification_of_an_identity_is_compared_with_state() -> None:
    told = [notified("car1"), refused("car1"), notified("car2"), read("car2"), Told("car1", ChangeKind.PRESENT)]
    assert find_superseded_notifications(snapshot(told)).tolist() == [0, 2]


CONTENTS = st.sampled_from(["a", "b", None])


@given(st.lists(st.tuples(st.sampled_from(["car1", "car2"]), CONTENTS)), st.dictionaries(st.just("car1"), st.just("a")))
def test_telling_what_is_sent_leaves_what_was_notified_last(events, before) -> None:
    told = [gone(name) if content is None else notified(name, content) for name, content in events]
    held = [Held(name, content=content) for name, content in before.items()]
    judged = replay_sequence(snapshot(told), state(held))
    steps = [(row, events[row]) for row in judged.sent.tolist()]
    steps += [(each.row, (told[each.row].identity, None)) for each in judged.deletions]
    target: dict[str, str | None] = dict(before)
    for _, (name, content) in sorted(steps, key=lambda step: step[0]):
        assert target.get(name) != content, "told twice"
        target[name] = content
    wanted = dict(before) | dict(events)
    assert {name: content for name, content in target.items() if content} == {
        name: content for name, content in wanted.items() if content
    }
    assert sorted(np.concatenate([judged.sent, judged.unchanged, _rows(judged)]).tolist()) == list(range(len(told)))


def _rows(judged: Any) -> Any:
    return np.unique(np.array([each.row for each in judged.deletions], dtype=np.int64))
