"""Notifications are compared in order: what repeats its predecessor is left out, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.comparing import Held, Row, snapshot, state
from contexture.records.changes import ChangeKind, compare, find_superseded_notifications, replay_sequence


def notified(identity: str, content: str = "new", verdict: ChangeKind = ChangeKind.SEND) -> Row:
    return Row(identity, verdict, content, None, notified=True)


def gone(identity: str) -> Row:
    return Row(identity, ChangeKind.DELETE, None, None, notified=True)


def refused(identity: str, *, notified: bool = True) -> Row:
    return Row(identity, ChangeKind.QUARANTINED, None, None, notified=notified)


def read(identity: str, content: str = "new", verdict: ChangeKind = ChangeKind.SEND) -> Row:
    return Row(identity, verdict, content)


def found(shown: list[Row], held: list[Held], **options: Any) -> dict[str, list[Any]]:
    """Row numbers by their result; a deletion as the row that reports it, and the identity that it ends."""
    judged = replay_sequence(snapshot(shown), state(held), **options)
    deletions = [
        (each.row, shown[each.before.row].identity if each.before.held is None else held[each.before.held].identity)
        for each in judged.deletions
    ]
    names = ("sent", "unchanged", "final")
    lists = {name: getattr(judged, name).tolist() for name in names if len(getattr(judged, name))}
    return {**lists, "deletions": deletions} if deletions else lists


@pytest.mark.parametrize(
    ("shown", "held", "expected"),
    [
        ([notified("car1", "a")], [], {"sent": [0], "final": [0]}),
        ([notified("car1", "a")], [Held("car1", content="a")], {"unchanged": [0]}),
        ([notified("car1", "b")], [Held("car1", content="a")], {"sent": [0], "final": [0]}),
        ([notified("car1", "b"), notified("car1", "b")], [], {"sent": [0], "unchanged": [1], "final": [0]}),
        ([notified("car1", "a"), notified("car1", "b"), notified("car1", "a")], [], {"sent": [0, 1, 2], "final": [2]}),
        # The last one equals state, but the event just before it does not.
        ([notified("car1", "b"), notified("car1", "a")], [Held("car1", content="a")], {"sent": [0, 1], "final": [1]}),
        # A refused event was not sent, so that it is no predecessor.
        (
            [notified("car1", "b"), refused("car1"), notified("car1", "b")],
            [],
            {"sent": [0], "unchanged": [2], "final": [0]},
        ),
        ([notified("car1", "b"), notified("car2", "b")], [], {"sent": [0, 1], "final": [0, 1]}),
    ],
)
def test_an_event_is_sent_unless_it_repeats_its_predecessor(shown, held, expected) -> None:
    assert found(shown, held) == expected


@pytest.mark.parametrize(
    ("shown", "held", "expected"),
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
        # All that is known of the entity goes, whether state or an earlier event shows it.
        (
            [notified("car1.oil"), gone("car1")],
            [Held("car1.speed"), Held("car2.speed")],
            {"sent": [0], "deletions": [(1, "car1.speed"), (1, "car1.oil")]},
        ),
    ],
)
def test_a_deletion_ends_what_was_sent_of_the_entity_before(shown, held, expected) -> None:
    assert found(shown, held) == expected


def test_without_deletions_the_target_keeps_what_it_has() -> None:
    shown = [gone("car1"), notified("car1", "old")]
    assert found(shown, [Held("car1")], deletes=False) == {"unchanged": [0, 1]}


def test_an_attribute_that_was_not_notified_is_not_taken_for_gone() -> None:
    held = [Held("car1.speed"), Held("car1.oil")]
    shown = [notified("car1.speed")]
    assert found(shown, held) == {"sent": [0], "final": [0]}
    assert compare(snapshot(shown), state(held), proves_absence=False).removed.tolist() == []


@pytest.mark.parametrize(
    ("shown", "expected"),
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
def test_what_was_read_follows_on_what_was_notified(shown, expected) -> None:
    assert found(shown, [Held("car1")]) == expected


def test_a_full_run_sends_what_was_read_again() -> None:
    shown = [notified("car1", "b"), notified("car1", "b"), read("car1", "b")]
    assert found(shown, [], resend=True) == {"sent": [0, 2], "unchanged": [1], "final": [2]}
    assert found(shown, [], resend=True, resend_notified=True) == {"sent": [0, 1, 2], "final": [2]}


def test_entities_that_were_not_notified_are_not_evaluated() -> None:
    shown = [read("car1", "old"), notified("car2"), read("car3")]
    assert replay_sequence(snapshot(shown), state([Held("car1")])).evaluated.tolist() == [1]


def test_an_attribute_that_was_notified_and_then_not_read_is_gone_in_the_end() -> None:
    shown = [notified("car1.speed"), notified("car1.oil"), read("car1.speed")]
    assert found(shown, []) == {"sent": [0, 1], "unchanged": [2], "final": [0], "deletions": [(None, "car1.oil")]}
    repeated = [notified("car1.oil", "old"), read("car1.speed")]
    assert found(repeated, [Held("car1.oil")]) == {
        "sent": [1],
        "unchanged": [0],
        "final": [1],
        "deletions": [(None, "car1.oil")],
    }


@pytest.mark.parametrize("hidden", [refused("car1.oil", notified=False), read("car1.oil", "contradicts")])
def test_what_was_refused_or_contradicted_is_not_taken_for_gone(hidden: Row) -> None:
    shown = [notified("car1.oil"), hidden, read("car1.speed")]
    left_out = [1] if hidden.verdict == ChangeKind.SEND else []
    assert found(shown, [], left_out=left_out) == {"sent": [0, 2], "final": [0, 2]}


def test_only_the_last_notification_of_an_identity_is_compared_with_state() -> None:
    shown = [notified("car1"), refused("car1"), notified("car2"), read("car2"), Row("car1", ChangeKind.PRESENT)]
    assert find_superseded_notifications(snapshot(shown)).tolist() == [0, 2]


CONTENTS = st.sampled_from(["a", "b", None])


@given(st.lists(st.tuples(st.sampled_from(["car1", "car2"]), CONTENTS)), st.dictionaries(st.just("car1"), st.just("a")))
def test_applying_what_is_sent_leaves_what_was_notified_last(events, before) -> None:
    shown = [gone(name) if content is None else notified(name, content) for name, content in events]
    held = [Held(name, content=content) for name, content in before.items()]
    judged = replay_sequence(snapshot(shown), state(held))
    steps = [(row, events[row]) for row in judged.sent.tolist()]
    steps += [(each.row, (shown[each.row].identity, None)) for each in judged.deletions]
    target: dict[str, str | None] = dict(before)
    for _, (name, content) in sorted(steps, key=lambda step: step[0]):
        assert target.get(name) != content, "sent twice"
        target[name] = content
    wanted = dict(before) | dict(events)
    assert {name: content for name, content in target.items() if content} == {
        name: content for name, content in wanted.items() if content
    }
    assert sorted(np.concatenate([judged.sent, judged.unchanged, _rows(judged)]).tolist()) == list(range(len(shown)))


def _rows(judged: Any) -> Any:
    return np.unique(np.array([each.row for each in judged.deletions], dtype=np.int64))
