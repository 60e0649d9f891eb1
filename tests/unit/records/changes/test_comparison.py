"""Comparing a snapshot with state: examples with names, then the laws that hold for all of them."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.comparing import Held, Row, at, entity, snapshot, state
from contexture.records.changes import ChangeKind, compare

OF_SNAPSHOT = ("superseded", "conflicting")
PRESENT = ChangeKind.PRESENT
QUARANTINED = ChangeKind.QUARANTINED
UNCHANGED = ChangeKind.UNCHANGED


def compared(
    shown: list[Row], held: list[Held], *, proves_absence: bool = True, as_of: int | None = None
) -> dict[str, list[str] | list[int]]:
    """What is not empty: row numbers of the snapshot, identities of the state."""
    found = compare(snapshot(shown), state(held), proves_absence=proves_absence, as_of=at(as_of))
    names = [field.name for field in fields(found) if field.name not in {"ends", "expired", "contradictions"}]
    rows = {name: getattr(found, name).tolist() for name in names}
    return {
        name: numbers if name in OF_SNAPSHOT else [held[number].identity for number in numbers]
        for name, numbers in rows.items()
        if numbers
    }


HELD_TO_END = [Held("car1", ends=5), Held("car2", ends=5)]


def test_a_new_entity_changes_nothing_that_is_held():
    assert compared([Row("car1"), Row("car2")], [Held("car1")]) == {}


def test_an_entity_is_absent_once_and_then_vanishes():
    assert compared([Row("car1")], [Held("car1"), Held("car2")]) == {"first_absent": ["car2"]}
    assert compared([Row("car1")], [Held("car1"), Held("car2", missing=True)]) == {"vanished": ["car2"]}


@pytest.mark.parametrize("verdict", list(ChangeKind))
def test_whatever_is_seen_again_loses_its_mark(verdict: ChangeKind):
    assert compared([Row("car1", verdict)], [Held("car1", missing=True)])["returned"] == ["car1"]


def test_an_incomplete_snapshot_marks_none_but_still_clears_marks():
    held = [Held("car1"), Held("car2", missing=True), Held("car3", missing=True)]

    assert compared([Row("car3", UNCHANGED)], held, proves_absence=False) == {"returned": ["car3"]}


def test_an_empty_snapshot_never_shows_absence():
    assert compared([], [Held("car1"), Held("car2", missing=True)]) == {}


def test_a_refused_entity_is_withheld_and_not_gone():
    assert compared([Row("car1", QUARANTINED)], [Held("car1")]) == {"withheld": ["car1"]}
    assert compared([Row("car1", QUARANTINED)], [Held("car1", withheld=True)]) == {}


def test_a_refused_entity_that_was_missing_is_withheld_and_seen():
    found = compared([Row("car1", QUARANTINED)], [Held("car1", missing=True)])

    assert found == {"withheld": ["car1"], "returned": ["car1"]}


def test_an_accepted_entity_is_no_longer_withheld():
    assert compared([Row("car1", UNCHANGED)], [Held("car1", withheld=True)]) == {"released": ["car1"]}


def test_a_sighting_alone_does_not_release():
    assert compared([Row("car1", PRESENT)], [Held("car1", withheld=True)]) == {}


def test_an_attribute_that_its_entity_no_longer_has_is_removed_at_once():
    held = [Held("car1.speed"), Held("car1.colour"), Held("car2.speed")]
    shown = [Row("car1.speed", UNCHANGED), Row("car2", PRESENT)]

    assert compared(shown, held) == {"removed": ["car1.colour"]}
    assert compared(shown, held, proves_absence=False) == {"removed": ["car1.colour"]}


def test_a_sighting_of_the_entity_keeps_its_attributes():
    assert compared([Row("car1", PRESENT)], [Held("car1.speed"), Held("car1.colour")]) == {}


def test_attributes_of_a_refused_entity_are_kept_and_withheld():
    found = compared([Row("car1", QUARANTINED)], [Held("car1.speed"), Held("car1.colour")])

    assert found == {"withheld": ["car1.speed", "car1.colour"]}


def test_a_refused_attribute_keeps_the_others_from_being_removed():
    found = compared([Row("car1.speed", QUARANTINED), Row("car1.wheels")], [Held("car1.speed"), Held("car1.colour")])

    assert found == {"withheld": ["car1.speed"]}


def test_attributes_of_an_absent_entity_take_two_runs():
    held = [Held("car1.speed"), Held("car1.colour", missing=True), Held("car2.speed")]

    found = compared([Row("car2.speed")], held)

    assert found == {"first_absent": ["car1.speed"], "vanished": ["car1.colour"]}


def test_other_data_models_remove_the_identities_of_the_old_one():
    assert compared([Row("car1.speed")], [Held("car1")]) == {"removed": ["car1"]}
    assert compared([Row("car1")], [Held("car1.speed")]) == {"removed": ["car1.speed"]}


def test_the_newest_modification_supersedes_the_others_wherever_it_is():
    shown = [
        Row("car1", content="b", minute=2),
        Row("car1", content="a", minute=1),
        Row("car1", minute=None),
    ]

    assert compared(shown, []) == {"superseded": [1, 2]}


def test_equal_content_at_the_same_time_is_sent_once():
    assert compared([Row("car1"), Row("car2"), Row("car1")], []) == {"superseded": [0]}


def test_other_content_at_the_same_time_contradicts_and_is_withheld():
    shown = [
        Row("car1", content="a"),
        Row("car1", content="b"),
        Row("car1", content="c", minute=-1),
    ]

    found = compared(shown, [Held("car1")])

    assert found == {"superseded": [2], "conflicting": [0, 1], "withheld": ["car1"]}


def test_a_refused_event_contradicts_an_accepted_one_of_the_same_time():
    found = compared([Row("car1", QUARANTINED), Row("car1", content="a")], [Held("car1")])

    assert found == {"conflicting": [1], "withheld": ["car1"]}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (Row("car1", QUARANTINED, minute=1), Row("car1", UNCHANGED, minute=2), {"superseded": [0]}),
        (Row("car1", UNCHANGED, minute=1), Row("car1", QUARANTINED, minute=2), {"withheld": ["car1"]}),
    ],
)
def test_the_newest_of_several_verdicts_counts(first: Row, second: Row, found: dict[str, object]):
    assert compared([first, second], [Held("car1")]) == {"superseded": [0], **found}


ENTITIES = st.sampled_from(["car1", "car2", "car3"])
IDENTITIES = st.one_of(ENTITIES, st.tuples(ENTITIES, st.sampled_from(["speed", "colour"])).map(".".join))
READ = [verdict for verdict in ChangeKind if verdict != ChangeKind.DELETE]
"""A deletion is never read: see `test_sequence.py`."""
MINUTES = st.sampled_from([None, 0, 1])
ROWS = st.builds(Row, IDENTITIES, st.sampled_from(READ), st.sampled_from(["a", "b"]), MINUTES, st.just(False), MINUTES)
SNAPSHOTS = st.lists(ROWS, max_size=8)
STATES = st.lists(
    st.builds(Held, IDENTITIES, st.booleans(), st.booleans(), st.just("old"), MINUTES),
    max_size=8,
    unique_by=lambda row: row[0],
)


@settings(deadline=None)
@given(SNAPSHOTS)
def test_no_event_is_lost(shown: list[Row]):
    """For each identity one event stays, or all that are left contradict each other and none stays."""
    found = compare(snapshot(shown), state([]), proves_absence=True)
    superseded, conflicting = set(found.superseded.tolist()), set(found.conflicting.tolist())

    assert not superseded & conflicting
    events = {row: item for row, item in enumerate(shown) if item.verdict != PRESENT}
    assert superseded | conflicting <= set(events)
    for identity in {item.identity for item in events.values()}:
        own = {row for row, item in events.items() if item.identity == identity}
        left = own - superseded
        assert left
        assert len(left) == 1 or left & conflicting


@settings(deadline=None)
@given(SNAPSHOTS, STATES, st.booleans())
def test_who_is_absent_was_not_seen(shown: list[Row], held: list[Held], proves_absence: bool):
    found = compared(shown, held, proves_absence=proves_absence)
    seen = {entity(item.identity) for item in shown}

    absent = [*found.get("first_absent", []), *found.get("vanished", [])]
    assert all(entity(str(identity)) not in seen for identity in absent)
    if proves_absence and shown:
        assert sorted(map(str, absent)) == sorted(row.identity for row in held if entity(row.identity) not in seen)
    else:
        assert absent == []


@settings(deadline=None)
@given(SNAPSHOTS, STATES, st.booleans())
def test_what_was_refused_is_never_deleted(shown: list[Row], held: list[Held], proves_absence: bool):
    found = compared(shown, held, proves_absence=proves_absence)
    settled = [item for row, item in enumerate(shown) if row not in found.get("superseded", [])]
    refused = {item.identity for item in settled if item.verdict == QUARANTINED}

    deleted = {*found.get("vanished", []), *found.get("removed", [])}
    assert not deleted & refused
    assert not {entity(str(identity)) for identity in deleted} & {entity(identity) for identity in refused}


@settings(deadline=None)
@given(SNAPSHOTS, STATES, st.booleans())
def test_nothing_both_stays_and_goes(shown: list[Row], held: list[Held], proves_absence: bool):
    found = compared(shown, held, proves_absence=proves_absence)
    pairs = [
        ("first_absent", "vanished"),
        ("first_absent", "returned"),
        ("vanished", "returned"),
        ("removed", "returned"),
        ("removed", "first_absent"),
        ("removed", "vanished"),
        ("withheld", "released"),
        ("withheld", "removed"),
    ]
    assert [pair for pair in pairs if set(found.get(pair[0], [])) & set(found.get(pair[1], []))] == []


def test_an_entity_that_was_to_end_by_now_and_is_gone_vanishes_at_once():
    held = [Held("car1", ends=10), Held("car2", ends=11), Held("car3", missing=True, ends=9), Held("car4")]
    assert compared([Row("van1")], held, as_of=10) == {
        "vanished": ["car1", "car3"],
        "first_absent": ["car2", "car4"],
    }
    assert compare(snapshot([Row("van1")]), state(held), proves_absence=True, as_of=at(10)).expired == 2


def test_an_entity_that_was_to_end_by_now_and_is_still_there_stays():
    assert compared([Row("car1", PRESENT), Row("car2", UNCHANGED, ends=5)], HELD_TO_END, as_of=10) == {}


def test_without_a_complete_read_or_a_clock_nothing_ends():
    assert compared([Row("van1")], HELD_TO_END, proves_absence=False, as_of=10) == {}
    assert compared([Row("van1")], HELD_TO_END) == {"first_absent": ["car1", "car2"]}
    assert compared([], HELD_TO_END, as_of=10) == {}


@pytest.mark.parametrize(("held", "shown"), [(5, 20), (None, 20), (5, None)])
def test_another_end_of_the_same_content_is_kept_in_mind(held: int | None, shown: int | None):
    rows = [Held("car1", ends=7), Held("car2", ends=held), Held("car3", ends=7)]
    events = [
        Row("car2", UNCHANGED, ends=shown),
        Row("car1", UNCHANGED, ends=7),
        Row("car3", ends=9),
    ]
    found = compare(snapshot(events), state(rows), proves_absence=True)
    assert (found.rescheduled.tolist(), found.ends.to_pylist()) == ([1], [at(shown)])


def test_of_contradicting_events_none_counts_or_the_last():
    shown = [
        Row("car1", content="a"),
        Row("car2"),
        Row("car1", content="b"),
        Row("car1", content="c"),
    ]

    strict = compare(snapshot(shown), state([]), proves_absence=True)
    lenient = compare(snapshot(shown), state([]), proves_absence=True, last_wins=True)

    assert (strict.conflicting.tolist(), strict.superseded.tolist(), strict.contradictions) == ([0, 2, 3], [], 3)
    assert (lenient.conflicting.tolist(), lenient.superseded.tolist(), lenient.contradictions) == ([], [0, 2], 3)


def test_the_last_does_not_win_against_one_that_was_refused():
    shown = [
        Row("car1", content="a"),
        Row("car1", QUARANTINED, content=None),
        Row("car1", content="b"),
    ]

    found = compare(snapshot(shown), state([]), proves_absence=True, last_wins=True)

    assert (found.conflicting.tolist(), found.superseded.tolist()) == ([0, 2], [])


def test_a_notification_that_does_not_say_when_its_entity_ends_moves_no_end():
    events = [Row("car1", UNCHANGED, notified=True)]
    assert compare(snapshot(events), state(HELD_TO_END[:1]), proves_absence=False).rescheduled.tolist() == []
