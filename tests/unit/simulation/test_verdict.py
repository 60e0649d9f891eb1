"""The judge of a schedule finds what must never happen, in logs that are written by hand."""

from __future__ import annotations

import pytest

from tools.simulation.clients import World
from tools.simulation.loads import TOPICS, load
from tools.simulation.partitions import Batch
from tools.simulation.verdict import Verdict, judge

FIRST, SECOND = load(1, 1, 6, 2), load(2, 1, 6, 2)


def written(*loads, change=lambda records: records):
    """Brokers to whose topics the outboxes were written, one record after the other."""
    brokers = World(1).brokers
    for topic in TOPICS:
        brokers.make(topic, 1)
    rows = [row for each in loads for row in each.shards[0].rows]
    for number, row in enumerate(change(rows)):
        partition = brokers.topics[row.topic].partitions[0]
        assert partition.append(Batch(number, 0, 0, [(row.key, row.value, ())]), 0.0) == "NO_ERROR"
        partition.mark(number, 0, committed=True)
    return brokers


def verdict_of(brokers, loads=(FIRST,), concluded=(True,)):
    verdict = Verdict()
    judge(brokers, loads, concluded, verdict)
    return dict(verdict.anomalies)


def test_what_was_sent_as_it_should_be_is_clean():
    assert verdict_of(written(FIRST, SECOND), (FIRST, SECOND), (True, True)) == {}


def test_a_missing_record_is_lost_and_its_transaction_torn():
    assert verdict_of(written(FIRST, change=lambda rows: rows[1:])) == {"lost": 1, "torn": 1}


def test_a_whole_transaction_of_an_outbox_that_was_given_up_may_be_missing():
    assert verdict_of(written(FIRST, change=lambda rows: rows[:4]), concluded=(False,)) == {}


def test_a_part_of_a_transaction_of_an_outbox_that_was_given_up_is_torn():
    assert verdict_of(written(FIRST, change=lambda rows: rows[:3]), concluded=(False,)) == {"torn": 1}


def test_a_record_that_is_there_twice_is_doubled():
    assert verdict_of(written(FIRST, change=lambda rows: [*rows, rows[-1]])) == {"doubled": 1}


def test_a_swapped_pair_of_a_key_is_reordered():
    long = load(1, 1, 14, 2)
    first, later = 0, 12
    rows = list(long.shards[0].rows)
    assert (rows[first].key, rows[first].topic) == (rows[later].key, rows[later].topic)

    def swapped(given):
        given[first], given[later] = given[later], given[first]
        return given

    assert verdict_of(written(long, change=swapped), (long,)) == {
        "reordered": 2
    }  # both stand before the one between them


def test_an_earlier_outbox_above_a_later_one_is_stale():
    found = verdict_of(written(SECOND, FIRST), (FIRST, SECOND), (False, True))
    assert found == {"stale": 6}


def test_what_an_open_transaction_hides_is_lost():
    brokers = written(FIRST)
    partition = brokers.topics["data.a"].partitions[0]
    partition.open[99] = 0
    assert verdict_of(brokers) == {"lost": 3, "torn": 3}


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_decides_about_all_that_its_producer_left_open(committed):
    partition = World(1).brokers
    partition.make("data.a", 1)
    log = partition.topics["data.a"].partitions[0]
    log.append(Batch(7, 0, 0, [(b"k", b"first try", ())]), 0.0)
    log.append(Batch(7, 1, 0, [(b"k", b"second try", ())]), 0.0)
    log.mark(7, 1, committed=committed)
    assert [record.value for record in log.visible()] == ([b"first try", b"second try"] if committed else [])
