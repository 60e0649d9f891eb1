"""Kafka removes records by their own time, so a history's records have that of their sending."""

from __future__ import annotations

import pytest

from builders.outboxes import publication
from contexture.kafka import ClientSettings, TopicRecord
from contexture.operations.verification.contents import event_time_ms, record_time_ms
from contexture.sending import SenderNames, timed_by_sending
from contexture.sending.target import KafkaTarget, SendRequest
from contexture.sending.testing import MemoryShard, OutboxRow, record_batch
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger

LONG_AGO_MS = 1_700_000_000_123
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [
    OutboxRow("cars", b"k0", b"a", timestamp_ms=LONG_AGO_MS, headers=(("own", b"1"),)),
    OutboxRow("cars", b"k1", None, timestamp_ms=LONG_AGO_MS + 1),
]


class Target(KafkaTarget):
    """Contexture's own, with a cluster in memory."""

    def __init__(self, owner, cluster):
        super().__init__(SETTINGS, owner)
        self.memory = cluster

    def _publisher(self, sending, **options):
        ledger = FakeLedger(self.memory, SenderNames("vehicles"))
        own = {"ledger": ledger, "hidden": FakeHidden(self.memory), "open_producer": self.memory.open_producer}
        return super()._publisher(sending, **own, **options)


def sent(keep):
    cluster = FakeCluster()
    owner = publication(topics={"keep": keep})
    Target(owner, cluster).send(SendRequest(MemoryShard(ROWS), 1, lambda failure: None))
    return [(each.timestamp, dict(each.headers or ())) for each in cluster.committed if each.topic == "cars"]


def test_records_of_a_history_get_the_time_of_their_sending_and_the_source_s_time_as_a_header():
    # The client takes 0 for its own clock.
    assert sent("history") == [
        (0, {"own": b"1", "contexture_event_time": b"1700000000123"}),
        (0, {"contexture_event_time": b"1700000000124"}),
    ]


def test_records_of_a_replica_keep_the_source_s_time():
    assert sent("latest") == [(LONG_AGO_MS, {"own": b"1"}), (LONG_AGO_MS + 1, {})]


@pytest.mark.parametrize("times", [(None, None), (None, LONG_AGO_MS)])
def test_what_has_no_time_gets_no_header(times):
    rows = record_batch([OutboxRow("cars", b"k", b"v", timestamp_ms=each) for each in times], 0)
    made = timed_by_sending(rows)
    found = made.to_pydict()
    assert found["timestamp"] == [None, None]
    wanted = None if times[1] is None else [None, b"1700000000123"]
    assert found.get("header:contexture_event_time") == wanted


def test_the_same_rows_are_always_the_same():
    rows = record_batch(ROWS, 0)
    assert timed_by_sending(rows).equals(timed_by_sending(rows))


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ((("contexture_event_time", b"1700000000123"),), 1_700_000_000_123),
        ((("contexture_event_time", b"yesterday"),), None),
        ((), None),
    ],
)
def test_a_verification_reads_the_header(headers, found):
    record = TopicRecord("cars", 0, 0, b"k", b"v", headers, 5)
    assert (event_time_ms(record), record_time_ms(record)) == (found, 5)
