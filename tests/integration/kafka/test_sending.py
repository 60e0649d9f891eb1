"""Sending, topics, ledger and readers on a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Producer

from builders.at_once import at_once
from builders.registry_outboxes import RegistryChange, shard
from contexture.errors import RejectedError
from contexture.kafka import (
    BrokersAwayError,
    ClientSettings,
    KafkaConfigurationError,
    TopicSpec,
    ensure_topics,
    partition_for,
    read_committed,
    test_connection,
)
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.sending import Claims, Ledger, Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture_sandbox.ports import free_ports

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def settings(kafka):
    # A missing topic is believed to be missing sooner than by default.
    return ClientSettings.from_extra({**kafka.client_settings(), "topic.metadata.propagation.max.ms": 2_000})


@pytest.fixture
def name():
    return f"test-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def topic(settings, name):
    ensure_topics(settings, [TopicSpec(name, partitions=4)])
    return name


def rows(topic, count=100, transaction_records=10):
    return [OutboxRow(topic, b"k%d" % n, b"v%d" % n, transaction=n // transaction_records) for n in range(count)]


def values(settings, topic):
    return sorted(record.value for record in read_committed(settings, [topic]))


def test_a_record_arrives_with_all_it_has(settings, topic):
    row = OutboxRow(topic, b"k", None, partition=2, timestamp_ms=1_700_000_000_123, headers=(("own", b"1"),))
    Publisher(settings, SenderNames(topic), shards=1).publish(MemoryShard([row], headers=(("service", b"x"),)))
    (record,) = read_committed(settings, [topic])
    assert (record.topic, record.partition, record.key, record.value) == (topic, 2, b"k", None)
    assert record.headers == (("service", b"x"), ("own", b"1"))
    assert record.timestamp_ms == 1_700_000_000_123


def test_keys_go_where_partition_for_says(settings, topic):
    Publisher(settings, SenderNames(topic), shards=1).publish(MemoryShard(rows(topic)))
    found = {record.key: record.partition for record in read_committed(settings, [topic])}
    assert found == {b"k%d" % n: partition_for(b"k%d" % n, 4) for n in range(100)}


def test_an_outbox_is_sent_once_and_an_older_one_never_after_it(settings, topic):
    publisher = Publisher(settings, SenderNames(topic), shards=2)
    first = publisher.publish(MemoryShard(rows(topic), outbox_id="new", sequence=2, shard=1))
    again = publisher.publish(MemoryShard(rows(topic), outbox_id="new", sequence=2, shard=1))
    older = publisher.publish(MemoryShard(rows(topic), outbox_id="old", sequence=1, shard=1))
    assert (first.records_sent, first.transactions) == (100, 10)
    assert (again.records_sent, again.records_skipped, older.superseded) == (0, 100, True)
    assert values(settings, topic) == sorted(b"v%d" % n for n in range(100))
    assert Ledger(settings, SenderNames(topic)).highest_sequence() == 2


def test_shards_without_records_are_claimed(settings, topic):
    names = SenderNames(topic)
    Publisher(settings, names, shards=3).publish(MemoryShard(rows(topic), outbox_id="old", sequence=1, shard=2))
    ledger = Ledger(settings, names)
    assert Claims(settings, names, ledger).claim("new", 2, shards=1, used=[0]).claimed == (1, 2)
    entries = ledger.entries()
    assert {shard: (entry.outbox, entry.sequence) for shard, entry in entries.items()} == {
        1: ("new", 2),
        2: ("new", 2),
    }
    older = Publisher(settings, names, shards=3).publish(MemoryShard(rows(topic), outbox_id="old", sequence=1, shard=1))
    assert older.superseded


def test_instances_that_share_only_kafka_agree_where_a_registrys_log_begins(settings, topic):
    names = SenderNames(topic)
    ledger = Ledger(settings, names)
    begun = [Claims(settings, names, ledger).set_log_start(f"baseline {number}", 1, number) for number in (11, 12)]
    log = [RegistryChange(11, ("FREQ",)), RegistryChange(12, ("AREA",)), RegistryChange(12, ("FREQ",), deletions=True)]
    result = Publisher(settings, names, shards=1).publish(shard(log, topic=topic))
    assert begun == [11, 11]
    assert (result.records_sent, result.transactions_elsewhere) == (2, 1)
    assert [record.value for record in read_committed(settings, [topic])] in ([b"12", None], [None, b"12"])
    assert ledger.read(0).source_place == (12, True)


def test_a_shards_ledger_is_not_hidden_by_another_shards_open_transaction(settings, topic):
    names = SenderNames(topic)
    Publisher(settings, names, shards=2).publish(MemoryShard(rows(topic), shard=1))
    other = Producer(settings.producer(names.transactional_id(0)))
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(names.ledger_topic, b"open", b"0", 0)
    other.flush(60)
    try:
        with at_once():
            again = Publisher(settings, names, shards=2).publish(MemoryShard(rows(topic), shard=1))
        assert (again.records_sent, again.records_skipped) == (0, 100)
    finally:
        other.abort_transaction(60)


def test_an_open_transaction_of_a_dead_sender_is_settled_before_the_ledger_is_believed(settings, topic):
    names = SenderNames(topic)
    Publisher(settings, names, shards=1).publish(MemoryShard(rows(topic, 50)))
    dead = Producer(settings.producer(names.transactional_id(0)))
    dead.init_transactions(60)
    dead.begin_transaction()
    dead.produce(topic, b"half", b"k0")
    dead.produce(names.ledger_topic, b"half", b"0", 0)
    dead.flush(60)
    result = Publisher(settings, names, shards=1).publish(MemoryShard(rows(topic, 100)))
    assert (result.records_sent, result.records_skipped) == (50, 50)
    assert values(settings, topic) == sorted(b"v%d" % n for n in range(100))


def test_a_ledger_grows_with_the_number_of_shards(settings, topic):
    names = SenderNames(topic)
    Publisher(settings, names, shards=1).publish(MemoryShard(rows(topic)))
    Publisher(settings, names, shards=3).publish(MemoryShard(rows(topic), outbox_id="next", sequence=2, shard=2))
    assert {shard: entry.sequence for shard, entry in Ledger(settings, names).entries().items()} == {0: 1, 2: 2}


@pytest.mark.parametrize("who_refuses", ["client", "broker"])
def test_a_record_too_large_stops_its_transaction_and_nothing_of_it_shows(kafka, name, who_refuses):
    limit = {"message.max.bytes": 50_000} if who_refuses == "client" else {}
    settings = ClientSettings.from_extra({**kafka.client_settings(), "compression.type": "none", **limit})
    ensure_topics(settings, [TopicSpec(name, config={"max.message.bytes": "20000"})])
    records = rows(name)
    records[25] = OutboxRow(name, b"big", b"x" * 60_000, transaction=2)
    with pytest.raises(RejectedError, match="MSG_SIZE_TOO_LARGE") as caught:
        Publisher(settings, SenderNames(name), shards=1).publish(MemoryShard(records))
    assert "message.max.bytes" in caught.value.next_step
    assert values(settings, name) == sorted(b"v%d" % n for n in range(20))


def test_a_record_without_key_to_a_compacted_topic_is_refused(settings, name):
    ensure_topics(settings, [TopicSpec(name, keep="latest")])
    with pytest.raises(RejectedError, match=f"topic {name}.*INVALID_RECORD"):
        Publisher(settings, SenderNames(name), shards=1).publish(MemoryShard([OutboxRow(name, None, b"v")]))


def test_a_missing_topic_is_named(settings, name):
    with pytest.raises(KafkaConfigurationError, match=f"topic {name}.*UNKNOWN_TOPIC") as caught:
        Publisher(settings, SenderNames(name), shards=1).publish(MemoryShard(rows(name)))
    assert "start a new run" in caught.value.next_step


def test_no_broker_is_said_clearly_and_soon():
    (port,) = free_ports(1)
    settings = ClientSettings.from_extra({"bootstrap.servers": f"127.0.0.1:{port}"})
    reported = []
    with pytest.raises(BrokersAwayError, match=r"did not respond for (?:[3-9]|\d\d+) s") as caught:
        Publisher(settings, SenderNames("p"), shards=1, broker_wait_seconds=3.0, progress=reported.append).publish(
            MemoryShard(rows("t"))
        )
    assert "bootstrap.servers" in caught.value.next_step
    assert any(progress.step == "waiting" for progress in reported)


def test_topics_are_made_once_and_differences_are_reported(settings, name):
    specs = [TopicSpec(f"{name}.{n}", 2, 1, {"retention.ms": "1000"}, "latest") for n in range(30)]
    made = ensure_topics(settings, specs)
    assert (len(made.created), made.existing, made.drift) == (30, 0, ())
    again = ensure_topics(settings, [TopicSpec(f"{name}.0", 3, 1, {"retention.ms": "5"}, "latest")])
    assert (again.created, again.existing) == ((), 1)
    assert {drift.setting: (drift.wanted, drift.found) for drift in again.drift} == {
        "partitions": ("3", "2"),
        "retention.ms": ("5", "1000"),
    }


def test_too_many_new_topics_are_a_mistake_and_none_is_made(settings, name):
    specs = [TopicSpec(f"{name}.{n}") for n in range(11)]
    with pytest.raises(KafkaConfigurationError, match=r"11 new topics.*max_new_topics") as refused:
        ensure_topics(settings, specs, max_new_topics=10)
    assert "data_model" in refused.value.next_step
    assert len(ensure_topics(settings, specs, max_new_topics=11).created) == 11


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        ({"config": {"cleanup.policy": "keep"}}, r"topics\.config"),
        ({"replication_factor": 3}, r"lower topics\.replication_factor"),
    ],
)
def test_a_topic_the_brokers_refuse_is_named_with_what_to_change(settings, name, spec, advice):
    with pytest.raises(KafkaConfigurationError, match=advice):
        ensure_topics(settings, [TopicSpec(name, **spec)])


def test_a_connection_that_works(settings, kafka):
    report = test_connection(settings)
    assert report.passed
    assert report.brokers == (kafka.bootstrap_servers,)
    assert report.cluster_id
    assert [check.name for check in report.checks] == [
        f"server {kafka.bootstrap_servers}",
        "authentication",
        "create topics",
        "transactions",
        "message size",
        "clock",
        "clean up",
    ]
    assert [topic for topic in TopicAdmin(settings, BrokerWait(60)).listed() if "connection-test" in topic] == []


@pytest.mark.parametrize("size", [5_000, 3_000_000])
def test_a_connection_is_tested_with_a_record_of_the_size_that_is_asked_for(settings, size):
    checks = {check.name: check for check in test_connection(settings, record_bytes=size).checks}
    found = checks["message size"]
    assert (found.passed, found.detail) == (
        True,
        f"a record of that size passes: message.max.bytes of this test is {size}, "
        f"max.message.bytes of the topic {size + 1_048_576}",
    )


def test_a_topic_that_is_not_there_is_reported_by_the_test_of_a_connection(settings, name):
    checks = {check.name: check for check in test_connection(settings, timeout_seconds=120, topic=name).checks}
    assert (checks["transactions"].passed, checks["transactions"].detail) == (
        False,
        f"topic {name} does not exist, or this user may not see it",
    )
    assert checks["transactions"].seconds < 60


def test_the_command_says_once_why_brokers_refuse_a_sender(kafka):
    extra = {**kafka.client_settings(), "transaction.timeout.ms": 3_600_000}
    environment = {**os.environ, "AIRFLOW_CONN_SLOW": json.dumps({"conn_type": "kafka", "extra": extra})}
    command = [sys.executable, "-m", "contexture.cli", "connection", "test", "slow"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "transactions: failed" in done.stdout
    assert done.stdout.count("INVALID_TRANSACTION_TIMEOUT") == 1
    assert "next: lower transaction.timeout.ms to the brokers' transaction.max.timeout.ms" in done.stdout


def test_a_connection_to_nowhere():
    (port,) = free_ports(1)
    report = test_connection(ClientSettings.from_extra({"bootstrap.servers": f"127.0.0.1:{port}"}), timeout_seconds=1.0)
    assert not report.passed
    assert [check.passed for check in report.checks] == [False, None, None, None, None, None]
    assert report.checks[0].detail == "nothing listens there"


def test_a_reader_sees_neither_aborted_nor_open_records(settings, topic):
    Publisher(settings, SenderNames(topic), shards=1).publish(MemoryShard(rows(topic)))
    aborted = Producer(settings.producer(f"aborted-{topic}"))
    aborted.init_transactions(60)
    aborted.begin_transaction()
    aborted.produce(topic, b"aborted", b"k")
    aborted.flush(60)
    aborted.abort_transaction(60)
    assert values(settings, topic) == sorted(b"v%d" % n for n in range(100))
    aborted.begin_transaction()
    aborted.produce(topic, b"open", b"k")
    aborted.flush(60)
    with pytest.raises(BrokersAwayError, match="open transaction"):
        list(read_committed(settings, [topic], timeout_seconds=3.0))
    aborted.abort_transaction(60)
    assert values(settings, topic) == sorted(b"v%d" % n for n in range(100))


def test_reading_a_topic_that_is_not_there(settings, name):
    with pytest.raises(KafkaConfigurationError, match=name):
        list(read_committed(settings, [name]))


def test_brokers_make_no_topic_that_differs_from_another_by_dots_alone(settings, name):
    ensure_topics(settings, [TopicSpec(f"{name}.car_1")])

    with pytest.raises(KafkaConfigurationError, match="collides with existing topic"):
        ensure_topics(settings, [TopicSpec(f"{name}.car.1")])
