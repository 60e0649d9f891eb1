"""A ledger without the row of a shard that was sent before stops its sender."""

from __future__ import annotations

import pytest

from contexture.kafka import ClientSettings
from contexture.kafka.errors import FencedError, LedgerLostError
from contexture.sending import Publisher, SenderNames
from contexture.sending.resume import ExpectedRow, RowExpectation
from contexture.sending.shard_records import fingerprint
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.kafka_cluster import TIMED_OUT, FakeCluster, FakeHidden, FakeLedger

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k%d" % n, b"v%d" % n, transaction=n // 10) for n in range(20)]
FIRST = {"cars": {fingerprint(b"k%d" % n, b"v%d" % n) for n in range(10)}}


@pytest.fixture
def cluster():
    return FakeCluster()


def publisher(cluster, names=NAMES):
    return Publisher(
        SETTINGS,
        names,
        shards=1,
        ledger=FakeLedger(cluster, names),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        sleep=lambda seconds: None,
    )


def values(cluster):
    return [sent.value for sent in cluster.committed if sent.topic == "cars"]


def empty_ledger(cluster):
    cluster.committed[:] = [sent for sent in cluster.committed if sent.topic == "cars"]


def test_a_row_that_must_be_there_and_is_not_stops_the_sender_before_its_first_record(cluster):
    with pytest.raises(LedgerLostError, match="holds nothing of shard 0 any more") as lost:
        publisher(cluster).publish(MemoryShard(ROWS), row=ExpectedRow.CERTAIN)

    assert "contexture ledger rebuild vehicles --dry-run" in lost.value.next_step
    assert values(cluster) == []


def test_a_row_that_is_possible_was_there_when_readers_see_the_first_transaction(cluster):
    cluster.seen = FIRST

    with pytest.raises(LedgerLostError):
        publisher(cluster).publish(MemoryShard(ROWS), row=ExpectedRow.POSSIBLE)


def test_a_row_that_is_possible_was_never_there_when_readers_see_nothing(cluster):
    assert publisher(cluster).publish(MemoryShard(ROWS), row=ExpectedRow.POSSIBLE).records_sent == 20


def test_a_ledger_that_is_emptied_between_two_clients_of_one_sending_stops_it(cluster):
    def fail_after_the_ledger_was_emptied(_):
        empty_ledger(cluster)
        raise TIMED_OUT

    cluster.script["begin_transaction"] = [None, fail_after_the_ledger_was_emptied]

    with pytest.raises(LedgerLostError):
        publisher(cluster).publish(MemoryShard(ROWS), attempts=[1, 1])

    assert len(values(cluster)) == 10


def test_a_lost_row_of_a_backfill_says_how_to_start_it_again(cluster):
    names = SenderNames("vehicles", backfill="20260101T000000Z")

    with pytest.raises(LedgerLostError) as lost:
        publisher(cluster, names).publish(MemoryShard(ROWS), row=ExpectedRow.CERTAIN)

    assert "start the backfill again" in lost.value.next_step


def test_a_row_that_another_sender_wrote_meanwhile_is_not_lost():
    expectation = RowExpectation(NAMES, 0, ExpectedRow.POSSIBLE)

    with pytest.raises(FencedError):
        expectation.check_missing(lambda: True, lambda: True)
