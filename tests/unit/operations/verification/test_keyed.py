"""The last value of each key and partition against state."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.replicas import TOPIC, Change, compared, content_of, held, histories, records, value
from contexture.operations.verification.comparison import (
    BASELINE,
    ELSEWHERE,
    MOVING,
    REMOVED,
    ComparisonResult,
    ExpectedHashes,
    KeyedComparison,
    ReadRecord,
)
from contexture.operations.verification.result import DifferenceSample

NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}
CARS = [Change("a", "1", 1), Change("b", "1", 1), Change("a", "2", 2), Change("c", "3", 2), Change("c", None, 3)]
A_IN_1, B_IN_0 = (1, b"a"), (0, b"b")


def differences(outcome: ComparisonResult) -> dict[str, int]:
    return {kind: count for kind, count in outcome.differences.items() if count}


@given(histories(), st.booleans(), st.sets(st.integers(1, 31)))
def test_a_replica_of_any_history_equals_its_state(
    changes: list[Change], reads_content: bool, archived: set[int]
) -> None:
    comparison = compared(changes, records(changes), archived=archived.__contains__, reads_content=reads_content)

    assert comparison.outcome().differences == NOTHING


@given(histories(1), st.data())
def test_a_compacted_replica_equals_its_state(changes: list[Change], data: st.DataObject) -> None:
    found = records(changes)
    # Compaction takes any record that a later one of its key follows, and a tombstone at any time later.
    last = {record.key: place for place, record in enumerate(found)}
    kept = [
        record
        for place, record in enumerate(found)
        if (place == last[record.key] and record.value is not None) or data.draw(st.booleans())
    ]
    # A tombstone that went takes with it what it deleted.
    tombstones = {record.key for record in kept if record.value is None and record is found[last[record.key]]}
    gone = {key for key, place in last.items() if found[place].value is None} - tombstones
    kept = [record for record in kept if record.key not in gone]

    assert compared(changes, kept).outcome().differences == NOTHING


@given(histories(1), st.data())
def test_each_kind_of_damage_is_found(changes: list[Change], data: st.DataObject) -> None:
    lives = held(changes)
    if not lives:
        return
    hit = data.draw(st.sampled_from(lives))
    assert hit.key is not None
    found, partition = records(changes), hit.key[0] % 2
    damage = data.draw(st.sampled_from(["removed", "changed", "overwritten", "deleted", "added", "moved"]))
    mine = [place for place, record in enumerate(found) if record.key == hit.key]
    if damage == "removed":
        found = [record for record in found if record.key != hit.key]
    elif damage == "changed":
        found = [record for place, record in enumerate(found) if place not in mine]
        found.append(ReadRecord(TOPIC, partition, hit.key, value("9")))
    else:
        found.append(
            {
                "overwritten": ReadRecord(TOPIC, partition, hit.key, value("9")),
                "deleted": ReadRecord(TOPIC, partition, hit.key, None),
                "added": ReadRecord(TOPIC, 0, b"stranger", value("1")),
                "moved": ReadRecord(TOPIC, 1 - partition, hit.key, value("1")),
            }[damage]
        )

    outcome = compared(changes, found).outcome()

    expected = {"removed": "missing", "changed": "different", "deleted": "missing", "added": "extra"}
    kind = expected.get(damage, "order")
    if damage == "moved":
        assert outcome.differences == {**NOTHING, "order": 2}, "both partitions are reported"
    else:
        assert outcome.differences == {**NOTHING, kind: 1}
    assert {sample.kind for sample in outcome.samples} == {kind}


def test_equal_values_are_compared_as_far_as_their_outbox_or_their_content_shows() -> None:
    bytes_, content = compared(CARS, records(CARS)), compared(CARS, records(CARS), archived=lambda sequence: False)
    presence = compared(CARS, records(CARS), archived=lambda sequence: False, reads_content=False)

    assert bytes_.outcome().compared == {"bytes": 2}
    assert content.outcome().compared == {"content": 2}
    assert presence.outcome().compared == {"presence": 2}


def test_the_same_content_in_other_bytes_is_equal_where_content_can_be_read() -> None:
    found = [*records(CARS)[1:2], ReadRecord(TOPIC, 1, b"a", b'{ "speed" : "2" }')]

    assert differences(compared(CARS, found).outcome()) == {}
    assert differences(compared(CARS, found, reads_content=False).outcome()) == {"different": 1}


def test_a_sample_names_the_identity_and_shows_no_content() -> None:
    found = [*records(CARS), ReadRecord(TOPIC, 0, b"b", value("secret")), ReadRecord(TOPIC, 0, b"z", value("secret"))]

    samples = compared(CARS, found).outcome().samples

    assert samples == (
        DifferenceSample(kind="extra", topic=TOPIC, partition=0, name="z", detail="state holds no such key"),
        DifferenceSample(
            kind="order", topic=TOPIC, partition=0, name='["b"]', detail="the right value was followed by another one"
        ),
    )


def test_a_missing_key_says_whether_a_tombstone_took_it() -> None:
    found = [record for record in records(CARS) if record.key != b"a"]

    samples = compared(CARS, [*found, ReadRecord(TOPIC, 0, b"b", None)]).outcome().samples

    assert [(sample.name, sample.detail) for sample in samples] == [
        ('["a"]', "no record has its key"),
        ('["b"]', "the last record of its key deletes it"),
    ]


def test_no_more_samples_of_a_kind_than_twenty_and_all_are_counted() -> None:
    found = [*records(CARS), *(ReadRecord(TOPIC, 0, f"z{number}".encode(), b"x") for number in range(50))]

    outcome = compared(CARS, found).outcome()

    assert outcome.differences["extra"] == 50
    assert len(outcome.samples) == 20


def test_keys_in_motion_are_not_judged() -> None:
    comparison = compared(CARS, [ReadRecord(TOPIC, 1, b"a", value("9")), ReadRecord(TOPIC, 0, b"new", value("1"))])
    comparison.expect_moved([(TOPIC, b"a"), (TOPIC, b"b"), (TOPIC, b"new")])

    outcome = comparison.outcome()

    assert outcome.differences == NOTHING
    assert outcome.unjudged == {MOVING: 3}


def test_what_another_publication_holds_in_the_topic_is_not_extra() -> None:
    comparison = compared(CARS, [*records(CARS), ReadRecord(TOPIC, 0, b"theirs", value("1"))])
    assert comparison.has_extra()

    comparison.belong_elsewhere([(TOPIC, b"theirs")])

    assert not comparison.has_extra()
    assert comparison.outcome().differences == NOTHING
    assert comparison.outcome().unjudged == {ELSEWHERE: 1}


def test_what_retention_may_have_removed_is_not_judged() -> None:
    outcome = compared(CARS, records(CARS)[1:2]).outcome(removed=frozenset({TOPIC}))

    assert outcome.differences == NOTHING
    assert outcome.unjudged == {REMOVED: 1}


def test_a_first_run_that_sent_nothing_is_not_judged() -> None:
    changes = [Change("a", "1", 1), Change("b", "1", 1), Change("c", "1", 2)]

    outcome = compared(changes, records(changes)[2:]).outcome(baseline=1)

    assert outcome.differences == NOTHING
    assert outcome.unjudged == {BASELINE: 2}


def test_a_first_run_of_which_something_is_there_was_sent() -> None:
    changes = [Change("a", "1", 1), Change("b", "1", 1), Change("c", "1", 2)]

    assert differences(compared(changes, records(changes)[1:]).outcome(baseline=1)) == {"missing": 1}


def test_of_several_identities_with_one_key_only_presence_is_judged() -> None:
    comparison = KeyedComparison(sqlite3.connect(":memory:"), content_of)
    rows = [ExpectedHashes(TOPIC, b"fleet", name, content_of(value("1")), 1) for name in (b"car", b"van")]
    comparison.expect([*rows, ExpectedHashes(TOPIC, b"alone", b"bus", content_of(value("1")), 1)])

    comparison.observe([ReadRecord(TOPIC, 0, b"fleet", value("7"))])

    assert differences(comparison.outcome()) == {"missing": 1}
    assert comparison.outcome().compared == {"presence": 1}
    assert comparison.outcome().held == 2


@pytest.mark.parametrize("key", [None, b""])
def test_a_record_without_key_is_another_one_than_one_with_an_empty_key(key: bytes | None) -> None:
    comparison = KeyedComparison(sqlite3.connect(":memory:"))
    comparison.expect([ExpectedHashes(TOPIC, key, b"car", b"", 1)])

    comparison.observe([ReadRecord(TOPIC, 0, b"" if key is None else None, b"x")])

    assert differences(comparison.outcome()) == {"missing": 1, "extra": 1}


def test_topics_and_sequences_are_those_of_what_should_be_held() -> None:
    comparison = compared(CARS, [])

    assert comparison.topics() == [TOPIC]
    assert comparison.sequences() == [2, 1]
