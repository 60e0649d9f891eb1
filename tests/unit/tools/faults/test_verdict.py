"""What the fault matrix calls lost, doubled, reordered and strange."""

from __future__ import annotations

from dataclasses import replace

from tools.faults.loads import Expected, context_load, registry_load, registry_log
from tools.faults.verdict import Found, Verdict, judge

LOAD = context_load(["cars", "trucks"], outbox="one", records=40)
OLD = context_load(["cars", "trucks"], outbox="old", records=20)


def found(records: tuple[Expected, ...]) -> list[Found]:
    return [Found(record.mark, record.topic, 0, record.key, record.value) for record in records]


def test_what_was_sent_is_clean() -> None:
    assert judge(LOAD.records, found(LOAD.records)) == Verdict()
    assert judge(LOAD.records, found(LOAD.records)).is_clean


def test_a_record_that_is_not_there_is_lost() -> None:
    assert judge(LOAD.records, found(LOAD.records[:17] + LOAD.records[18:])) == Verdict(lost=1)


def test_each_further_copy_of_a_record_is_doubled() -> None:
    verdict = judge(LOAD.records, [*found(LOAD.records), *found(LOAD.records[-1:]), *found(LOAD.records[-1:])])

    assert (verdict.lost, verdict.doubled) == (0, 2)


def test_records_of_one_key_that_change_places_are_reordered() -> None:
    # Keys come round every 7 records, topics change every 3: records 7 and 14 are of one key, 14 and 35 of one topic.
    records = list(found(LOAD.records))
    same = [number for number, record in enumerate(records) if (record.topic, record.key) == ("cars", b"entity-0")]
    records[same[0]], records[same[1]] = records[same[1]], records[same[0]]

    assert judge(LOAD.records, records).reordered > 0


def test_partitions_have_no_order_between_them() -> None:
    records = found(LOAD.records)
    apart = [replace(record, partition=1) for record in records if record.topic == "trucks"]

    assert judge(LOAD.records, [*apart, *(record for record in records if record.topic == "cars")]).is_clean


def test_a_record_with_another_value_is_strange() -> None:
    records = found(LOAD.records)
    records[3] = replace(records[3], value=b"other")

    assert judge(LOAD.records, records) == Verdict(strange=1)


def test_an_outbox_that_was_given_up_may_be_there_in_part_but_in_whole_transactions() -> None:
    whole = found(OLD.records[:10]) + found(LOAD.records)
    torn = found(OLD.records[:7]) + found(LOAD.records)

    assert judge(LOAD.records, whole, OLD.records).is_clean
    assert judge(LOAD.records, torn, OLD.records) == Verdict(strange=7)


def test_an_outbox_that_was_given_up_must_not_follow_the_next_one() -> None:
    assert judge(LOAD.records, found(LOAD.records) + found(OLD.records), OLD.records).reordered > 0


def test_two_instances_send_the_same_records() -> None:
    log = registry_log(6)
    here = registry_load("structures", log[:4], outbox="here")
    there = registry_load("structures", log, outbox="there")

    assert there.records[: len(here.records)] == here.records
    assert [part.place for part in there.shards[0].registry][:5] == [
        (1, False),
        (2, False),
        (3, False),
        (3, True),
        (4, False),
    ]
