"""Runs after a topic was removed, from a context broker to Kafka: it holds everything again, and that was reported."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from builders.outboxes import publication
from builders.plain_kafka import consumed, remove_topics
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import ClientSettings
from contexture.kafka.errors import KafkaConfigurationError
from contexture.publications import Publication
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import place_order, read_staged_outbox
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline, stage

pytestmark = pytest.mark.integration

CARS = 50


class City(WholeRuns):
    """A replica of 50 cars in one topic."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, broker: TestBroker) -> None:
        super().__init__(home, kafka)
        self.kafka, self.broker = kafka, broker
        # By default a client waits 30 s for a topic that it does not know.
        quick = {"topic.metadata.propagation.max.ms": 2_000}
        self.settings = ClientSettings.from_extra({**kafka.client_settings(), **quick})
        self.cars: Publication = publication(
            name=self.name,
            source={"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
            topics={"naming": "fixed", "topics": [self.topic], "keep": "latest"},
        )

    def change(self, name: str) -> None:
        headers = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/4wheels"}
        changed = {"speed": {"type": "Number", "value": 999}}
        url = f"{self.broker.url}/v2/entities/{name}/attrs"
        httpx.patch(url, headers=headers, json=changed).raise_for_status()

    def remove_topic(self) -> None:
        remove_topics(self.kafka.client_settings(), self.topic)

    def make_topic_by_hand(self) -> None:
        admin = AdminClient(self.kafka.client_settings())
        admin.create_topics([NewTopic(self.topic, 1, 1, config={"cleanup.policy": "compact"})])[self.topic].result(60)
        producer = Producer(self.kafka.client_settings())
        producer.produce(self.topic, b"something else", b"foreign")
        assert producer.flush(60) == 0

    def cars_in_topic(self) -> int:
        """How many of the cars a plain consumer finds."""
        newest = {message.key(): message.value() for message in consumed(self.kafka, self.topic)}
        return sum(1 for key, value in newest.items() if value and b'"car' in key)

    def speed_of_car0(self) -> bool:
        """Whether the changed value is there."""
        return any(b"999" in (message.value() or b"") for message in consumed(self.kafka, self.topic))

    def lost(self) -> tuple[str, ...]:
        found = self.storage.publication(self.name).state.pointer().lost_topics
        return found.topics if found else ()

    def staged(self, **asked: Any) -> StagedOutbox:
        """A run up to its gate."""
        request = RunRequest(run_id=f"run-{time.monotonic_ns()}", **asked)
        plan = finish_open_transaction(self.storage.publication(self.cars.name), self.cars, request, self.target, print)
        order = place_order(self.storage.publication(self.cars.name), self.cars, request, plan, self.target)
        stage.main(["--order", order.uri])
        return read_staged_outbox(self.storage.publication(order.publication), order, None)

    def judged(self, staged: StagedOutbox) -> Manifest:
        apply_verdict(
            self.storage.publication(staged.publication), staged, dry_run=False, target_for=self.target, report=print
        )
        return self.storage.publication(self.name).outboxes.manifest(staged.outbox)

    def sent(self, manifest: Manifest) -> None:
        store = self.storage.publication(self.name)
        for shard in [each.shard for each in manifest.shards if each.records]:
            attempts = build_shard_attempts(store, manifest.outbox, shard, self.cars, report=print)
            send_shard(
                self.storage.publication(manifest.publication), manifest, shard, self.target(self.cars, None), attempts
            )

    def concluded(self, staged: StagedOutbox) -> None:
        assert (
            conclude_run(
                self.storage.publication(staged.publication), staged, self.target, print, now=datetime.now(UTC)
            )
            is not None
        )


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        broker.load(car(number) for number in range(CARS))
        connection = BrokerConnection(broker.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        made = City(tmp_path / "home", kafka, broker)
        made.ran(made.cars)
        assert made.cars_in_topic() == CARS
        yield made


def car(number: int) -> SeedEntity:
    moment = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": number, "metadata": {}}}
    return SeedEntity("vehicles", "/4wheels", entity, moment, moment)


@pytest.mark.parametrize("is_made_by_hand", [False, True])
def test_the_next_run_fills_a_removed_topic(city: City, is_made_by_hand: bool) -> None:
    city.remove_topic()
    if is_made_by_hand:
        city.make_topic_by_hand()
    city.change("car0")

    run = city.ran(city.cars)

    assert (run.mode, run.records) == ("full", CARS)
    assert city.cars_in_topic() == CARS
    assert city.speed_of_car0()
    assert city.lost() == ()
    following = city.ran(city.cars)
    assert (following.mode, following.records) == ("changes", 0)


def test_a_topic_that_is_removed_while_a_run_sends_is_filled_by_the_next(city: City) -> None:
    city.change("car0")
    staged = city.staged()
    manifest = city.judged(staged)
    city.sent(manifest)
    city.remove_topic()
    city.make_topic_by_hand()
    city.concluded(staged)

    assert city.lost() == (city.topic,)
    assert city.cars_in_topic() == 0
    assert city.ran(city.cars).mode == "full"
    assert (city.cars_in_topic(), city.lost()) == (CARS, ())


def test_a_topic_that_is_removed_before_the_first_record_stops_sending_until_the_next_run(city: City) -> None:
    city.change("car0")
    manifest = city.judged(city.staged())
    city.remove_topic()
    with pytest.raises(KafkaConfigurationError) as stopped:
        city.sent(manifest)
    assert stopped.value.next_step.startswith("start a new run: it creates a removed topic again")

    run = city.ran(city.cars)

    assert (run.mode, run.records) == ("full", CARS)
    assert (city.cars_in_topic(), city.lost()) == (CARS, ())
