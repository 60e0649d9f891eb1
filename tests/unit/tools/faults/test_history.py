"""What a followed run proves: planted faults are found in histories, and what Kafka may do is not called a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tools.faults.history import Cut, History, prove
from tools.faults.loads import Expected, context_load, registry_load, registry_log
from tools.faults.verdict import Found, Verdict

LOAD = context_load(["cars", "trucks"], outbox="one", records=40)
REGISTRY = registry_load("structures", registry_log(6), outbox="one")
TWO_SHARDS = context_load(["cars"], outbox="one", shards=2, records=20)


def found(records: Sequence[Expected]) -> list[Found]:
    ends: dict[tuple[str, int], int] = {}
    made: list[Found] = []
    for record in records:
        place = (record.topic, sum(record.key) % 2)
        ends[place] = ends.get(place, -1) + 1
        made.append(Found(record.mark, *place, record.key, record.value, ends[place]))
    return made


def followed(records: Sequence[Found], *steps: tuple[int, int], settled: bool = True) -> History:
    """A history with a cut after each step: so many records visible, so many written."""
    history = History(list(records), [record.mark for record in records])
    high = {("cars", 0): 1_000}
    for visible, written in steps:
        stable = high if settled else {("cars", 0): 0}
        history.cuts.append(Cut(visible, high, stable, visible, written))
    return history


def test_whole_transactions_one_after_the_other_are_clean() -> None:
    records = found(LOAD.records)

    assert prove(followed(records, (0, 0), (10, 10), (20, 20), (40, 40)), records, LOAD.records) == Verdict()


def test_a_commit_per_record_is_torn_though_everything_is_there_in_the_end() -> None:
    records = found(LOAD.records)
    history = followed(records, *((number, number) for number in range(41)), settled=False)

    assert prove(history, records, LOAD.records) == Verdict(torn=4)


def test_a_transaction_that_was_half_visible_at_a_settled_cut_is_torn() -> None:
    records = found(LOAD.records)

    assert prove(followed(records, (15, 20), (40, 40)), records, LOAD.records) == Verdict(torn=1)


def test_a_registry_transaction_that_is_half_visible_when_the_next_one_is_seen_is_torn() -> None:
    records = found(REGISTRY.records)
    # Registry transaction 1 has three records; its last one comes after the first of transaction 2.
    late = [*records[:2], records[3], records[2], *records[4:]]
    history = followed(late, (3, len(late)), settled=False)

    assert prove(history, records, REGISTRY.records) == Verdict(torn=1)


def test_records_of_a_transaction_may_become_visible_one_after_the_other_while_all_of_them_are_written() -> None:
    records = found(LOAD.records)

    assert prove(followed(records, (4, 10), (9, 10), settled=False), records, LOAD.records) == Verdict()


def test_another_senders_open_transaction_may_hold_back_a_committed_one() -> None:
    records = found(TWO_SHARDS.records)
    first = [record for record in records if record.mark.startswith(b"one/0/")]
    # The second transaction of shard 0 is seen in one partition; the first one is held back in the other.
    history = followed([first[10], *first[:10], *first[11:]], (1, 20), settled=False)

    assert prove(history, records, TWO_SHARDS.records) == Verdict()


def test_a_transaction_that_ends_in_part_is_torn() -> None:
    old = context_load(["cars", "trucks"], outbox="old", records=20)
    records = [*found(old.records[:7]), *found(LOAD.records)]

    assert prove(History(records), records, LOAD.records, old.records).torn == 1


def test_a_doubled_transaction_is_found() -> None:
    records = found([*LOAD.records[:20], *LOAD.records[10:]])

    verdict = prove(followed(records, (50, 50)), records, LOAD.records)

    assert (verdict.doubled, verdict.reordered > 0) == (10, True)


def test_a_swapped_pair_of_a_key_is_found() -> None:
    records = list(LOAD.records)
    same = [number for number, each in enumerate(records) if (each.topic, each.key) == ("cars", b"entity-0")]
    records[same[0]], records[same[1]] = records[same[1]], records[same[0]]

    assert prove(History(found(records)), found(records), LOAD.records).reordered > 0


def test_a_key_in_two_partitions_is_found() -> None:
    records = found(LOAD.records)
    last = max(number for number, each in enumerate(records) if each.key == b"entity-0")
    records[last] = replace(records[last], partition=1 - records[last].partition)

    assert prove(History(records), records, LOAD.records).scattered == 1


@pytest.mark.parametrize("instead", [None, b""])
def test_a_tombstone_that_is_missing_or_has_a_value_is_found(instead: bytes | None) -> None:
    records = found(LOAD.records)
    number = next(number for number, record in enumerate(records) if record.value is None)
    changed = [] if instead is None else [replace(records[number], value=instead)]
    records[number : number + 1] = changed

    verdict = prove(History(records), records, LOAD.records)

    assert (verdict.lost, verdict.strange) == ((1, 0) if instead is None else (0, 1))


def test_a_record_that_was_visible_and_is_gone_is_found() -> None:
    records = found(LOAD.records)

    assert prove(followed(records, (40, 40)), records[:-1], LOAD.records).vanished == 1
