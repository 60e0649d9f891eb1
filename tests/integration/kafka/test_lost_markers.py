"""A partition has no leader while a transaction is settled: Kafka leaves its marker out, and nothing is doubled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.kafka.broker_wait import BrokerWait
from contexture.sending import Publisher, SenderNames, ShardResult
from contexture.sending.ledger import Ledger, LedgerEntry
from contexture.sending.ledger_copies import LedgerCopies
from contexture.sending.open_transactions import OpenTransactions
from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.loads import Load, context_load
from tools.faults.reading import read_topics
from tools.faults.verdict import judge

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(600)]

CONFIG = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
OPTIONS = {"transaction.timeout.ms": 3_000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(3, heap="384m", broker_config=CONFIG) as three:
        # The first transaction of all makes the coordinator's topic.
        Producer({**three.client_settings(), "transactional.id": "first"}).init_transactions(60)
        yield three


def leaders(cluster: EmbeddedKafka, topic: str) -> list[int]:
    """Which brokers, from 0, lead a topic's partitions; -1 for none."""
    admin, partitions = AdminClient(cluster.client_settings()), {}
    while not partitions:  # A broker that has just come back does not know the topic yet.
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return [max(-1, int(partitions[number].leader) - 1) for number in sorted(partitions)]


def fragile_topic(cluster: EmbeddedKafka, settings: ClientSettings, name: str) -> tuple[str, int]:
    """A topic without replicas whose only partition is not with the coordinator's broker, and that broker."""
    (coordinator,) = set(leaders(cluster, "__transaction_state"))
    for number in range(20):
        topic = f"{name}.{number}"
        ensure_topics(settings, [TopicSpec(topic, partitions=1, replication_factor=1)])
        (broker,) = leaders(cluster, topic)
        if broker != coordinator:
            return topic, broker
    pytest.fail("every topic was put beside the coordinator")


def publisher(settings: ClientSettings, name: str) -> Publisher:
    return Publisher(settings, SenderNames(name), shards=1, broker_wait_seconds=120.0)


def send(settings: ClientSettings, name: str, load: Load) -> ShardResult:
    return publisher(settings, name).publish(load.shards[0], attempts=[500] * 5)


def transactional(settings: ClientSettings, name: str) -> Producer:
    """A sender of the shard, as a process that dies leaves one behind."""
    producer = Producer(settings.producer(SenderNames(name).transactional_id(0)))
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def produce(producer: Producer, load: Load, records: range) -> None:
    for number in records:
        row = load.shards[0].rows[number]
        producer.produce(row.topic, row.value, row.key, headers=list(row.headers))
    assert producer.flush(60) == 0


def await_leaders(cluster: EmbeddedKafka, topic: str, *, away: bool) -> None:
    deadline = time.monotonic() + 60
    while (-1 in leaders(cluster, topic)) is not away:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def hidden(settings: ClientSettings, topic: str) -> int:
    """How many offsets a topic hides."""
    spans = OpenTransactions(settings, BrokerWait(60.0)).spans([topic])
    return sum(end - start for start, end in spans.values())


def await_nothing_hidden(settings: ClientSettings, topic: str) -> None:
    """A commit is answered a little before its markers are written."""
    deadline = time.monotonic() + 20
    while hidden(settings, topic):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def commit_without_marker(cluster: EmbeddedKafka, producer: Producer, topic: str, broker: int) -> None:
    """Commits while the topic's partition has no leader: its marker is left out."""
    cluster.kill(broker)
    await_leaders(cluster, topic, away=True)
    producer.commit_transaction(60)
    cluster.start()
    await_leaders(cluster, topic, away=False)


def test_what_kafka_forgot_to_abort_does_not_become_visible_with_the_next_commit(cluster: EmbeddedKafka) -> None:
    name = "forgotten-abort"
    settings = ClientSettings.from_extra(cluster.client_settings() | OPTIONS)
    topic, broker = fragile_topic(cluster, settings, name)
    load = context_load([topic], outbox="one", records=40)
    send(settings, name, context_load([topic], outbox="before", records=10, sequence=0))
    await_nothing_hidden(settings, topic)
    produce(transactional(settings, name), load, range(4))
    cluster.kill(broker)
    await_leaders(cluster, topic, away=True)
    # Longer than the transaction may stay open: the coordinator gives it up while the partition has no leader.
    time.sleep(5)
    cluster.start()
    await_leaders(cluster, topic, away=False)

    assert hidden(settings, topic) == 4  # The fault is there: nothing of it is settled.
    assert send(settings, name, load).records_sent == 40
    found = [record for record in read_topics(cluster.bootstrap_servers, [topic]) if record.mark.startswith(b"one/")]
    assert judge(load.records, found).is_clean
    await_nothing_hidden(settings, topic)


def test_what_kafka_forgot_to_commit_becomes_visible_with_the_next_commit(cluster: EmbeddedKafka) -> None:
    name = "forgotten-commit"
    settings = ClientSettings.from_extra(cluster.client_settings())
    topic, broker = fragile_topic(cluster, settings, name)
    load = context_load([topic], outbox="one", records=40)
    ledger = Ledger(settings, SenderNames(name))
    ledger.prepare(1)
    producer = transactional(settings, name)
    produce(producer, load, range(10))
    row = first_row(load)
    producer.produce(ledger.topic, row, ledger.key(0), 0)
    assert producer.flush(60) == 0
    commit_without_marker(cluster, producer, topic, broker)

    assert hidden(settings, topic) == 10
    assert send(settings, name, load).records_sent == 30
    assert judge(load.records, read_topics(cluster.bootstrap_servers, [topic])).is_clean


@pytest.mark.parametrize("is_since_known", [True, False])
@pytest.mark.parametrize("takes_away", [True, False])
def test_what_kafka_forgot_to_commit_and_an_abort_took_away_is_sent_again(
    cluster: EmbeddedKafka, takes_away: bool, is_since_known: bool
) -> None:
    name = f"taken-{takes_away}-{is_since_known}".lower()
    settings = ClientSettings.from_extra(cluster.client_settings())
    topic, broker = fragile_topic(cluster, settings, name)
    # The last transaction is the one: no later commit shows it.
    load = context_load([topic], outbox="one", records=40 if takes_away else 10)
    ledger = Ledger(settings, SenderNames(name))
    ledger.prepare(1)
    since = datetime.now(UTC) if is_since_known else None
    producer = transactional(settings, name)
    produce(producer, load, range(10))
    producer.produce(ledger.topic, first_row(load, since), ledger.key(0), 0)
    assert producer.flush(60) == 0
    commit_without_marker(cluster, producer, topic, broker)
    assert hidden(settings, topic) == 10
    if takes_away:
        # Another sender begins the next transaction, and is killed: it is aborted, and the hidden records with it.
        produce(transactional(settings, name), load, range(10, 14))
        transactional(settings, name).abort_transaction(60)
        await_nothing_hidden(settings, topic)
        assert list(read_topics(cluster.bootstrap_servers, [topic])) == []

    assert send(settings, name, load).records_sent == (30 if takes_away else 0)
    assert judge(load.records, read_topics(cluster.bootstrap_servers, [topic])).is_clean
    await_nothing_hidden(settings, topic)


def test_partitions_that_kept_their_leader_are_not_read(cluster: EmbeddedKafka) -> None:
    settings = ClientSettings.from_extra(cluster.client_settings())
    topic, broker = fragile_topic(cluster, settings, "led")
    since = datetime.now(UTC)
    send(settings, "led", context_load([topic], outbox="one", records=10))
    looked = OpenTransactions(settings, BrokerWait(60.0))
    assert looked.moved([topic], since) == {}
    cluster.kill(broker)
    await_leaders(cluster, topic, away=True)
    cluster.start()
    await_leaders(cluster, topic, away=False)
    assert set(looked.moved([topic], since)) == {(topic, 0)}


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_whose_row_alone_kafka_forgot_is_sent_once(cluster: EmbeddedKafka, commits: bool) -> None:
    name = f"forgotten-row-{commits}".lower()
    settings = ClientSettings.from_extra(cluster.client_settings())
    ensure_topics(settings, [TopicSpec(name, partitions=2, replication_factor=3)])
    load = context_load([name], outbox="one", records=40)
    (coordinator,) = set(leaders(cluster, "__transaction_state"))
    for attempt in range(20):
        sender = f"{name}-{attempt}"
        ledger = Ledger(settings, SenderNames(sender), replication_factor=1)
        ledger.prepare(1)
        (broker,) = leaders(cluster, ledger.topic)
        if broker != coordinator:
            break
    producer = transactional(settings, sender)
    produce(producer, load, range(10))
    producer.produce(ledger.topic, first_row(load), ledger.key(0), 0)
    assert producer.flush(60) == 0
    cluster.kill(broker)
    await_leaders(cluster, ledger.topic, away=True)
    if commits:
        producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)
    cluster.start()
    await_leaders(cluster, ledger.topic, away=False)

    assert hidden(settings, ledger.topic) == 1  # The fault is there: the row is neither committed nor aborted.
    assert send(settings, sender, load).records_sent == (30 if commits else 40)
    assert judge(load.records, read_topics(cluster.bootstrap_servers, [name])).is_clean
    await_nothing_hidden(settings, ledger.topic)


def test_a_ledger_gets_three_replicas_where_there_are_three_brokers(cluster: EmbeddedKafka) -> None:
    settings = ClientSettings.from_extra(cluster.client_settings())
    ledger = Ledger(settings, SenderNames("replicated"))
    ledger.prepare(1)
    admin = AdminClient(cluster.client_settings())
    assert len(admin.list_topics(ledger.topic, timeout=60).topics[ledger.topic].partitions[0].replicas) == 3
    assert ledger.copies() == LedgerCopies(ledger.topic, replicas=3, in_sync=2, brokers=3)


def test_a_ledger_with_one_replica_on_three_brokers_is_weak(cluster: EmbeddedKafka) -> None:
    settings = ClientSettings.from_extra(cluster.client_settings())
    ledger = Ledger(settings, SenderNames("thin"), replication_factor=1)
    assert ledger.copies() is None
    ledger.prepare(1)
    assert ledger.copies() == LedgerCopies(ledger.topic, replicas=1, in_sync=1, brokers=3)


def first_row(load: Load, since: datetime | None = None) -> bytes:
    """The ledger's row of a load's first transaction."""
    shard = load.shards[0]
    row = LedgerEntry(shard.outbox_id, shard.sequence, 10, 10, 0, 0, None, datetime.now(UTC), since=since)
    return row.to_json()
