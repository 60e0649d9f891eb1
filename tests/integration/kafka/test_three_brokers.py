"""One of three brokers is lost in mid send: with acks=all and two replicas in sync, nothing is lost or doubled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.sending import Publisher, SenderNames, ShardResult
from contexture.sending.context import SendProgress
from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.loads import Load, context_load
from tools.faults.reading import read_topics
from tools.faults.verdict import judge

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(600)]

CONFIG = {"min.insync.replicas": "2"}
RECORDS = 3_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(3, heap="384m") as three:
        yield three


def leader(cluster: EmbeddedKafka, topic: str) -> int:
    """Which broker, from 0, leads a topic's first partition."""
    admin = AdminClient(cluster.client_settings())
    return int(admin.list_topics(topic, timeout=60).topics[topic].partitions[0].leader) - 1


def await_all_replicas(cluster: EmbeddedKafka, topics: list[str]) -> None:
    admin, deadline = AdminClient(cluster.client_settings()), time.monotonic() + 120
    while time.monotonic() < deadline:
        listed = admin.list_topics(timeout=60).topics
        if all(len(part.isrs) == 3 for topic in topics for part in listed[topic].partitions.values()):
            return
        time.sleep(0.5)
    pytest.fail("the replicas did not come back")


@pytest.mark.parametrize("loses", ["the transaction coordinator", "the leader of a topic"])
def test_a_broker_is_lost_in_mid_send(cluster: EmbeddedKafka, loses: str) -> None:
    name = f"three-{loses.split()[1]}"
    settings = ClientSettings.from_extra(cluster.client_settings())
    topics = [f"{name}.{number}" for number in range(3)]
    ensure_topics(settings, [TopicSpec(topic, partitions=3, replication_factor=3, config=CONFIG) for topic in topics])
    load = context_load(topics, outbox="one", records=RECORDS)
    halfway, results = threading.Event(), []

    def report(progress: SendProgress) -> None:
        if progress.position >= RECORDS // 4:
            halfway.set()

    sending = threading.Thread(target=lambda: results.append(send(settings, name, load, report)))
    sending.start()
    assert halfway.wait(120)
    lost = leader(cluster, topics[0] if loses == "the leader of a topic" else "__transaction_state")
    cluster.kill(lost)
    sending.join(300)

    assert [result.records_sent for result in results] == [RECORDS]
    assert cluster.running.count(True) == 2
    assert judge(load.records, read_topics(cluster.bootstrap_servers, topics)).is_clean
    cluster.start()
    await_all_replicas(cluster, topics)


def send(settings: ClientSettings, name: str, load: Load, report) -> ShardResult:
    publisher = Publisher(settings, SenderNames(name), shards=1, progress=report, broker_wait_seconds=120.0)
    return publisher.publish(load.shards[0], attempts=[1_000] * 5)
