"""Planted faults on a real broker: plain producers that do wrong, and what the fault matrix's judge finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.follower import Follower
from tools.faults.history import prove
from tools.faults.loads import MARK, Expected, context_load
from tools.faults.reading import read_topics
from tools.faults.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_SECONDS = 30.0
Transactions = list[list[Expected]]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


def sent_and_judged(bootstrap: str, name: str, plant: Callable[[Transactions], Transactions]) -> Verdict:
    """Sends an outbox as a plant has it, with a cut after each transaction and each open one."""
    topics = [f"{name}.cars", f"{name}.trucks"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(each, 2, 1) for each in topics]).values():
        made.result(_SECONDS)
    records = context_load(topics, outbox=name, records=40).records
    transactions = plant([list(records[first : first + 10]) for first in range(0, 40, 10)])
    follower = Follower(bootstrap, topics)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(_SECONDS)
    try:
        for transaction in transactions:
            send(producer, transaction)
            follower.cut()
            producer.commit_transaction(_SECONDS)
            follower.cut()
        found = read_topics(bootstrap, topics)
        last = follower.cut()
        assert last is not None
        assert last.is_settled
    finally:
        follower.close()
    return prove(follower.history, found, records)


def send(producer: Producer, transaction: Sequence[Expected]) -> None:
    producer.begin_transaction()
    for record in transaction:
        partition = 1 if record.lanes == ("elsewhere",) else sum(record.key) % 2
        producer.produce(record.topic, record.value, record.key, partition, headers=[(MARK, record.mark)])
    producer.flush(_SECONDS)


def swapped(transactions: Transactions) -> Transactions:
    # Records 0 and 14 are of one key and one topic.
    first, second = transactions[0], transactions[1]
    assert (first[0].topic, first[0].key) == (second[4].topic, second[4].key)
    first[0], second[4] = second[4], first[0]
    return transactions


def elsewhere(transactions: Transactions) -> Transactions:
    record = next(each for each in transactions[3] if sum(each.key) % 2 == 0)
    away = Expected(record.mark, record.topic, record.key, record.value, record.transaction, ("elsewhere",))
    transactions[3][transactions[3].index(record)] = away
    return transactions


def without_a_tombstone(transactions: Transactions) -> Transactions:
    return [transactions[0], [each for each in transactions[1] if each is not transactions[1][4]], *transactions[2:]]


def test_a_sender_of_whole_transactions_is_clean(bootstrap: str) -> None:
    assert sent_and_judged(bootstrap, "whole", lambda transactions: transactions) == Verdict()


def test_a_commit_per_record_is_caught(bootstrap: str) -> None:
    verdict = sent_and_judged(bootstrap, "single", lambda whole: [*whole[:3], *([record] for record in whole[3])])

    assert verdict == Verdict(torn=1)


def test_a_doubled_transaction_is_caught(bootstrap: str) -> None:
    verdict = sent_and_judged(bootstrap, "doubled", lambda whole: [*whole, whole[1]])

    assert verdict.doubled == 10


def test_a_swapped_pair_is_caught(bootstrap: str) -> None:
    verdict = sent_and_judged(bootstrap, "swapped", swapped)

    assert verdict.reordered > 0


def test_a_key_in_two_partitions_is_caught(bootstrap: str) -> None:
    assert sent_and_judged(bootstrap, "elsewhere", elsewhere).scattered == 1


def test_a_missing_tombstone_is_caught(bootstrap: str) -> None:
    verdict = sent_and_judged(bootstrap, "tombstone", without_a_tombstone)

    assert (verdict.lost, verdict.torn) == (1, 1)
