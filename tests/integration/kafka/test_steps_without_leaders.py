"""Brokers of three are killed one after the other while settle, gate, publish, conclude and readers of the topics work.

A partition without a leader makes the client answer with a sentinel (-1001 for an offset, -1 for a leader), which no
step may take for an answer: a ledger would look empty, and records would be sent again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import randbits
from typing import TypeVar
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from builders.kafka_runs import Instance
from builders.outboxes import outbox, publication
from contexture.errors import RetriableError
from contexture.kafka import TopicSpec, ensure_topics
from contexture.kafka.admin import NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.operations.verification.topics import KafkaTopics
from contexture.sending import Ledger, SenderNames
from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.reading import read_topics

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(1_200)]

T = TypeVar("T")
TRIES = 10


@pytest.fixture(scope="module")
def three() -> Iterator[EmbeddedKafka]:
    config = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with EmbeddedKafka(3, heap="384m", broker_config=config) as cluster:
        # The first transaction of all makes the coordinator's topic.
        Producer({**cluster.client_settings(), "transactional.id": "first"}).init_transactions(60)
        yield cluster


class Killer:
    """Kills a broker, lets the others work alone for a moment, starts it again; and so on until it is left."""

    def __init__(self, cluster: EmbeddedKafka, seed: int) -> None:
        self.kills = 0
        self._cluster, self._random, self._over = cluster, random.Random(seed), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._random.uniform(0.0, 2.0)):
            self._cluster.kill(self._random.randrange(3))
            self.kills += 1
            time.sleep(self._random.uniform(0.5, 4.0))
            self._cluster.start()


def tried_again(step: Callable[[], T]) -> T:
    """A task that is tried again as Airflow does: after errors that may pass, and after no others."""
    for _ in range(TRIES):
        try:
            return step()
        except RetriableError:
            time.sleep(1.0)
    return step()


def newest(city: Instance, topic: str) -> dict[bytes, bytes]:
    """What `verify` reads."""
    topics = KafkaTopics(city.settings, city.owner)
    return {record.key: record.value for record in topics.records(topics.cut([topic]))}


@pytest.mark.parametrize(("ledger_replicas", "runs"), [(3, 8), (1, 3)])
def test_no_step_takes_a_lost_leader_for_an_answer(
    three: EmbeddedKafka, tmp_path: Path, ledger_replicas: int, runs: int
) -> None:
    seed = randbits(31)
    name = f"leaderless-{uuid4().hex[:8]}"
    city = Instance(three, tmp_path, publication(name=name))
    topic, names = f"topic-{name}", SenderNames(name)
    ensure_topics(city.settings, [TopicSpec(topic, 3, 3, {}, "latest")])
    if ledger_replicas == 1:
        admin = TopicAdmin(city.settings, BrokerWait(60.0))
        admin.create([NewTopicOrder(names.ledger_topic, 2, 1, {"cleanup.policy": "compact"})])
        admin.await_usable({names.ledger_topic: 2})
    expected: dict[bytes, list[bytes]] = {}
    with Killer(three, seed) as killer:
        for sequence in range(1, runs + 1):
            value = b"value %d" % sequence
            shards = [[(topic, b"car %d-%d" % (shard, number), value) for number in range(20)] for shard in range(2)]
            for _, key, _ in (*shards[0], *shards[1]):
                expected.setdefault(key, []).append(value)
            tried_again(city.settled)
            manifest = outbox(city.storage, city.owner, sequence, shards)
            for shard in tried_again(lambda manifest=manifest: city.judged(manifest)):
                tried_again(lambda manifest=manifest, shard=shard: city.sent(manifest, shard))
            tried_again(lambda manifest=manifest: city.concluded(manifest))
            assert city.outboxes.status(manifest.outbox).status == "concluded", f"seed {seed}"
            entries = tried_again(lambda: Ledger(city.settings, names).entries())
            sequences = {shard: entry.sequence for shard, entry in entries.items()}
            assert sequences == {0: sequence, 1: sequence}, f"seed {seed}"
            seen = tried_again(lambda: newest(city, topic))
            assert seen == {key: values[-1] for key, values in expected.items()}, f"seed {seed}"
    found: dict[bytes, list[bytes]] = {}
    for record in read_topics(three.bootstrap_servers, [topic]):
        found.setdefault(record.key, []).append(record.value)
    assert found == expected, f"seed {seed}"
    assert killer.kills >= 3
