"""A request to end a transaction arrives within a later one (KIP-890): the proxy holds it, and cuts its client off."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import transactional_producer
from contexture.kafka.producer import ProducerSession
from contexture.sending import Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow
from tools.faults.kafka_proxy import Answer, Duplicate, Fate, Hold, KafkaProxy, Request, behind_proxy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

RECORDS, IN_A_TRANSACTION, PARTITIONS = 8_000, 2_000, 2
PADDING = b"x" * 1_000
STALE = {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}

Lab = tuple[KafkaProxy, str, str]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with behind_proxy() as found:
        yield found


@pytest.fixture(autouse=True)
def _calm_again(lab: Lab) -> Iterator[None]:
    lab[0].reset()
    yield
    lab[0].reset()
    assert lab[0].failure is None


class SlowShard(MemoryShard):
    """Reads in pieces, with pauses: what was given is with the broker before the rest is."""

    def batches(self, position):
        for number, batch in enumerate(super().batches(position)):
            time.sleep(0.05 if number else 0)
            yield batch


class Hides:
    """Says once that a partition hides the beginning of the shard."""

    def __init__(self, topic: str) -> None:
        self.places = [(topic, 0)]

    def spans(self, topics):
        return dict.fromkeys(self.places, (0, 1))

    def matching(self, spans, sought):
        found, self.places = self.places, []
        return found


def rows(topic: str) -> list[OutboxRow]:
    return [
        OutboxRow(topic, b"key-%d" % (n % 97), b"%d " % n + PADDING, transaction=n // IN_A_TRANSACTION)
        for n in range(RECORDS)
    ]


def send(lab: Lab, topic: str, hidden=None) -> None:
    ensure_topics(
        ClientSettings.from_extra({"bootstrap.servers": lab[2]}),
        [TopicSpec(topic, partitions=PARTITIONS, replication_factor=1)],
    )
    settings = ClientSettings.from_extra({"bootstrap.servers": lab[1]})
    sender = Publisher(settings, SenderNames(topic), shards=1, broker_wait_seconds=120.0, hidden=hidden)
    sender.publish(SlowShard(rows(topic), batch_rows=500), attempts=[200] * 5)


def numbers_read(lab: Lab, topic: str) -> dict[tuple[int, bytes], list[int]]:
    """What a plain read-committed consumer gets, by partition and key."""
    consumer = Consumer({"bootstrap.servers": lab[2], "group.id": "plain", "isolation.level": "read_committed"})
    found: dict[tuple[int, bytes], list[int]] = {}
    for partition in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
        consumer.assign([TopicPartition(topic, partition, 0)])
        while consumer.position([TopicPartition(topic, partition)])[0].offset < end:
            for message in consumer.consume(1_000, 1.0):
                assert message.error() is None
                found.setdefault((partition, message.key()), []).append(int(message.value().split(b" ")[0]))
    consumer.close()
    return found


def assert_once_and_in_order(lab: Lab, topic: str) -> None:
    found = numbers_read(lab, topic)
    assert sorted(number for numbers in found.values() for number in numbers) == list(range(RECORDS))
    assert all(numbers == sorted(numbers) for numbers in found.values())


class Delayed:
    """Holds one request until the third batch of records after the request's copy was answered."""

    def __init__(self, proxy: KafkaProxy, api: str, number: int) -> None:
        self._proxy, self._api, self._number = proxy, api, number
        self._copy_answered = False
        self._batches = 0
        self.answer: str | None = None
        proxy.fate, proxy.answered = self._fate, self._answered

    def _fate(self, request: Request) -> Fate | None:
        return Hold("old") if (request.api, request.number) == (self._api, self._number) else None

    def _answered(self, answer: Answer) -> None:
        request = answer.request
        if request.is_stale:
            self.answer = answer.error
        elif request.api == self._api and request.number > self._number and answer.error == "NONE":
            self._copy_answered = True
        elif request.api == "Produce" and self._copy_answered:
            self._batches += 1
            if self._batches == 3:
                self._proxy.release("old")


@pytest.mark.parametrize("transaction", [1, 2, 3])
def test_a_commit_that_arrives_in_a_later_transaction_changes_nothing(lab, transaction):
    delayed = Delayed(lab[0], "EndTxn", transaction)
    send(lab, f"late-commit-{transaction}")
    assert delayed.answer in STALE
    assert_once_and_in_order(lab, f"late-commit-{transaction}")


def test_an_abort_that_arrives_in_a_later_transaction_changes_nothing(lab):
    delayed = Delayed(lab[0], "EndTxn", 1)
    send(lab, "late-abort", Hides("late-abort"))
    assert delayed.answer in STALE
    assert_once_and_in_order(lab, "late-abort")


def session(lab: Lab, name: str) -> tuple[ProducerSession, ClientCallbacks]:
    ensure_topics(
        ClientSettings.from_extra({"bootstrap.servers": lab[2]}), [TopicSpec(name, partitions=1, replication_factor=1)]
    )
    watch = ClientCallbacks()
    settings = ClientSettings.from_extra({"bootstrap.servers": lab[1]})
    producer = transactional_producer(settings, f"tx.{name}", watch)
    found = ProducerSession(producer, watch, BrokerWait(60.0), ledger_topic=name, transaction_timeout_seconds=60.0)
    found.initialise()
    return found, watch


def end_one(found: ProducerSession, topic: str, *, commits: bool) -> None:
    if commits:
        found.begin()
        found.produce_one(topic, key=b"k", value=b"v", partition=0)
        found.commit()
    else:
        found.abort_in([(topic, 0)], b"a test")


# What follows pins the text of the client's log that the guard reads.
@pytest.mark.parametrize("commits", [True, False])
def test_the_client_logs_one_good_answer_for_an_end_without_trouble(lab, commits):
    found, watch = session(lab, f"calm-{commits}")
    for _ in range(3):
        end_one(found, f"calm-{commits}", commits=commits)
        assert watch.ends == ["NO_ERROR"]
        assert not found.is_uncertain
    found.close()


@pytest.mark.parametrize("commits", [True, False])
def test_the_client_logs_an_end_that_it_sent_again(lab, commits):
    found, watch = session(lab, f"again-{commits}")
    lab[0].fate = lambda request: Hold("old") if (request.api, request.number) == ("EndTxn", 1) else None
    end_one(found, f"again-{commits}", commits=commits)
    assert watch.ends == ["_TRANSPORT", "NO_ERROR"]
    assert found.is_uncertain
    lab[0].release("old")
    found.close()


def test_an_end_that_the_network_doubles_at_once_is_harmless(lab):
    lab[0].fate = lambda request: Duplicate() if request.api == "EndTxn" else None
    send(lab, "doubled-commit")
    assert_once_and_in_order(lab, "doubled-commit")
