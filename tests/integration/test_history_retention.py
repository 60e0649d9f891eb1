"""What a history holds stays as long as its topic says, however old it is in the source; on a real broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from builders.task_runs import INTERVAL, City
from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings, TopicRecord, TopicSpec, ensure_topics, read_committed
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

WEEK = {"retention.ms": "604800000"}
LONG_AGO_MS = 1_700_000_000_000
LIMIT_SECONDS = 120.0


@pytest.fixture(scope="module")
def eager() -> Iterator[EmbeddedKafka]:
    """A broker that looks every second for what is older than the retention of its topic."""
    config = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "100"}
    with EmbeddedKafka(broker_config=config) as cluster:
        yield cluster


class Cleaner:
    """Shows when a broker has looked at all of its topics."""

    def __init__(self, settings: ClientSettings, name: str) -> None:
        self.settings, self.topic = settings, f"{name}-old"
        self.producer = Producer({**settings.options})
        ensure_topics(settings, [TopicSpec(self.topic, config=WEEK)])

    def has_looked(self) -> None:
        """Returns once the broker has removed an old record twice: it has looked at every topic in between."""
        for _ in range(2):
            self.producer.produce(self.topic, b"old", timestamp=LONG_AGO_MS)
            assert self.producer.flush(60) == 0
            deadline = time.monotonic() + LIMIT_SECONDS
            while list(self.records()):
                assert time.monotonic() < deadline, "the broker removes nothing"
                time.sleep(0.2)

    def records(self) -> Iterator[TopicRecord]:
        return iter(list(read_committed(self.settings, [self.topic])))


def history(tmp_path: Path, kafka: EmbeddedKafka) -> City:
    return City(tmp_path, kafka, topics={"keep": "history", "config": WEEK})


def test_a_history_keeps_what_is_older_in_the_source_than_the_retention_of_its_topic(
    tmp_path: Path, eager: EmbeddedKafka
) -> None:
    city = history(tmp_path, eager)
    before_ms = time.time_ns() // 1_000_000
    # A first load, and a backfill of a past interval: both of entities that were changed in March.
    assert city.ran(city.prepared(1, "car1 car2", "car3"))
    assert city.ran(city.prepared(2, "car4", interval=INTERVAL))
    Cleaner(city.settings, city.topic).has_looked()
    found = list(read_committed(city.settings, [city.topic]))
    assert sorted(record.key or b"" for record in found) == [b"car1", b"car2", b"car3", b"car4"]
    # The time of its change is in a header, and its own is that of its sending.
    assert {dict(record.headers)["contexture_event_time"] for record in found} == {b"1772366400000"}
    assert all(record.timestamp_ms is not None and record.timestamp_ms >= before_ms for record in found)


@pytest.mark.parametrize(
    ("keep", "policy", "other"), [("history", "compact", "delete"), ("latest", "delete", "compact")]
)
def test_an_existing_topic_that_would_lose_records_is_refused_before_anything_is_sent(
    tmp_path: Path, eager: EmbeddedKafka, keep: str, policy: str, other: str
) -> None:
    city = City(tmp_path, eager, topics={"keep": keep})
    ensure_topics(city.settings, [TopicSpec(city.topic, config={"cleanup.policy": policy})])
    manifest = city.prepared(1, "car1")
    with pytest.raises(ConfigurationError, match=f"cleanup.policy is {policy}") as raised:
        city.judged(manifest)
    assert f"--entity-name {city.topic} --add-config cleanup.policy={other}" in (raised.value.next_step or "")
    assert (city.storage.publication(city.publication.name).outboxes.status("outbox1").status, city.keys()) == (
        "prepared",
        [],
    )
    # What the remedy does, and then the same task again.
    TopicAdmin(city.settings, BrokerWait(60)).configure({city.topic: {"cleanup.policy": other}})
    assert city.ran(manifest)
    assert city.keys() == [b"car1"]
