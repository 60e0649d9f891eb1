"""Each record of the topics against the archive of outboxes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from contexture.operations.verification.comparison import (
    MOVING,
    OLDER,
    REMOVED,
    ComparisonResult,
    ReadRecord,
    RecordComparison,
    SentRecord,
)

NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}
LINES = [SentRecord("cars", None, f"line{number}".encode(), 1 + number // 4, number % 2) for number in range(8)]


def found(sent: Sequence[SentRecord], partition: int = 0) -> list[ReadRecord]:
    return [ReadRecord(each.topic, partition, each.key, each.value) for each in sent]


def outcome(
    sent: Sequence[SentRecord],
    records: Sequence[ReadRecord],
    *,
    complete: bool = True,
    removed: frozenset[str] = frozenset(),
) -> ComparisonResult:
    comparison = RecordComparison(sqlite3.connect(":memory:"), complete=complete)
    comparison.sent(sent)
    comparison.observe(records)
    return comparison.outcome(removed=removed)


@given(st.lists(st.tuples(st.sampled_from([b"x", b"y", None]), st.integers(0, 1)), max_size=30), st.data())
def test_what_was_sent_equals_what_is_there_however_shards_and_partitions_mix(
    rows: list[tuple[bytes | None, int]], data: st.DataObject
) -> None:
    sent = [SentRecord("cars", None, value, 1, shard) for value, shard in sorted(rows, key=lambda row: row[1])]
    of_shards = [[each for each in sent if each.shard == shard] for shard in (0, 1)]
    mixed: list[ReadRecord] = []
    while any(of_shards):
        chosen = data.draw(st.sampled_from([rows for rows in of_shards if rows]))
        # A shard's records keep their order within a partition; which one a record goes to is Kafka's to choose.
        mixed.append(ReadRecord("cars", chosen[0].shard, None, chosen.pop(0).value))

    assert outcome(sent, mixed).differences == NOTHING


def test_a_record_that_is_gone_is_missing() -> None:
    result = outcome(LINES, found(LINES[1:]))

    assert result.differences == {**NOTHING, "missing": 1}
    assert result.samples[0].detail == "run 1 sent it in shard 0"
    assert result.held == 8
    assert result.compared == {"bytes": 7}


def test_a_record_that_is_there_twice_is_extra() -> None:
    assert outcome(LINES, found([*LINES, LINES[0]])).differences == {**NOTHING, "extra": 1}


def test_a_changed_record_is_missing_and_extra() -> None:
    changed = [*found(LINES[:-1]), ReadRecord("cars", 0, None, b"other")]

    assert outcome(LINES, changed).differences == {**NOTHING, "missing": 1, "extra": 1}


def test_records_of_a_shard_in_another_order_are_reported() -> None:
    assert outcome(LINES, found([LINES[2], LINES[0], *LINES[1:2], *LINES[3:]])).differences == {**NOTHING, "order": 1}


def test_a_record_of_an_earlier_run_behind_one_of_a_later_run_is_reported() -> None:
    assert outcome(LINES, found([*LINES[1:], LINES[0]])).differences == {**NOTHING, "order": 1}


def test_a_tombstone_is_another_record_than_an_empty_value() -> None:
    result = outcome([SentRecord("cars", b"a", None, 1, 0)], [ReadRecord("cars", 0, b"a", b"")])

    assert result.differences == {**NOTHING, "missing": 1, "extra": 1}


def test_what_lies_before_the_archive_is_older_and_what_follows_it_is_extra() -> None:
    strangers = [ReadRecord("cars", 0, None, b"old"), *found(LINES), ReadRecord("cars", 0, None, b"new")]

    result = outcome(LINES, strangers, complete=False)

    assert result.differences == {**NOTHING, "extra": 1}
    assert result.unjudged == {OLDER: 1}


def test_what_retention_may_have_removed_is_not_missing() -> None:
    result = outcome(LINES, found(LINES[3:]), removed=frozenset({"cars"}))

    assert result.differences == NOTHING
    assert result.unjudged == {REMOVED: 3}
    assert result.samples == ()


def test_records_of_an_outbox_in_motion_may_be_there_or_not() -> None:
    moving = [SentRecord("cars", None, b"now", 3, 0, moves=True), SentRecord("cars", None, b"soon", 3, 0, moves=True)]

    result = outcome([*LINES, *moving], found([*LINES, moving[0]]))

    assert result.differences == NOTHING
    assert result.unjudged == {MOVING: 2}
    assert result.held == 8
