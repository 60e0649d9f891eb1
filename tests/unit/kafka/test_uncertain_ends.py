"""A request to end a transaction that may still be under way never meets a later transaction of the same client."""

from __future__ import annotations

import pytest

from contexture.errors import DefectError
from contexture.kafka import ClientSettings
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import transactional_producer
from contexture.kafka.producer import ProducerSession
from contexture.sending import Publisher, SenderNames
from contexture.sending.shard_records import fingerprint
from contexture.sending.testing import MemoryShard, OutboxRow
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger

NAMES = SenderNames("vehicles")
SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
ROWS = [OutboxRow("cars", b"k%d" % n, b"v%d" % n, transaction=n // 10) for n in range(40)]
VALUES = [b"v%d" % n for n in range(40)]


@pytest.fixture
def cluster():
    return FakeCluster()


def publish(cluster):
    sender = Publisher(
        SETTINGS,
        NAMES,
        shards=1,
        ledger=FakeLedger(cluster, NAMES),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        sleep=lambda seconds: None,
    )
    return sender.publish(MemoryShard(ROWS))


def test_commits_that_are_answered_at_once_need_one_client(cluster):
    publish(cluster)
    assert len(cluster.producers) == 1


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(["_TRANSPORT", "NO_ERROR"], id="the connection was lost"),
        pytest.param(["_TIMED_OUT_QUEUE", "NO_ERROR"], id="no answer came in time"),
        pytest.param(["CONCURRENT_TRANSACTIONS", "NO_ERROR"], id="the coordinator was busy"),
        pytest.param(["NO_ERROR", "NO_ERROR"], id="answered twice"),
        pytest.param([], id="the log says nothing"),
    ],
)
def test_after_an_uncertain_commit_the_rest_is_sent_with_a_new_client(cluster, answers):
    cluster.ends = [["NO_ERROR"], answers]
    publish(cluster)
    assert cluster.values("cars") == VALUES
    assert [producer.epoch for producer in cluster.producers] == [1, 2]


def test_a_client_that_never_says_how_transactions_end_is_replaced_after_each(cluster):
    cluster.ends = [[]] * 4
    publish(cluster)
    assert cluster.values("cars") == VALUES
    assert len(cluster.producers) == 4


def test_after_an_uncertain_abort_everything_is_sent_with_a_new_client(cluster):
    cluster.hidden = {("cars", 0): {fingerprint(b"k0", b"v0")}}
    cluster.ends = [["_TRANSPORT", "NO_ERROR"]]
    publish(cluster)
    assert cluster.values("cars") == VALUES
    assert cluster.aborted == [[("cars", 0)]]
    assert len(cluster.producers) == 2


def test_no_transaction_is_begun_after_an_uncertain_one(cluster):
    watch = ClientCallbacks()
    producer = cluster.open_producer(None, "id", watch)
    session = ProducerSession(producer, watch, BrokerWait(1.0), ledger_topic="ledger", transaction_timeout_seconds=60.0)
    session.initialise()
    session.begin()
    cluster.ends = [["_TRANSPORT", "NO_ERROR"]]
    session.commit()
    with pytest.raises(DefectError, match="uncertain"):
        session.begin()


def test_a_client_logs_how_transactions_end_beside_what_the_connection_asks_for():
    said = []
    watch = ClientCallbacks()
    watch.on_log = said.append
    settings = ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:1", "debug": "conf"})
    transactional_producer(settings, "id", watch).poll(0)
    assert any(line.endswith("debug = eos,conf") for line in said)
