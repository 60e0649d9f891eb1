"""Quarantined events from their run to Kafka: refused, tried again, sent and concluded, by the steps of the tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from builders.outboxes import publication
from contexture.kafka import ClientSettings, read_committed
from contexture.ngsi import BrokerConnection
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest, Verdict
from contexture.outbox.retrying import Quarantine
from contexture.outbox.state import State
from contexture.outbox.storage import Storage
from contexture.publications import Publication
from contexture.sandbox import java
from contexture.sandbox.context_broker import SeedEntity, TestBroker
from contexture.sandbox.kafka import EmbeddedKafka
from contexture_airflow.steps.attempting import attempts_of
from contexture_airflow.steps.concluding import conclude_run
from contexture_airflow.steps.gate import judge
from contexture_airflow.steps.run import Interval, RunRequest
from contexture_airflow.steps.sending import send_shard
from contexture_airflow.steps.settling import settle
from contexture_airflow.steps.staging import answer, place_order
from contexture_airflow.steps.target import KafkaTarget, Target
from spark_jobs import phases, session, stage

pytestmark = pytest.mark.integration


class Lasting:
    """One session for several jobs, which they can not stop."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Goes on."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**java.find().environment(), "SPARK_LOCAL_IP": "127.0.0.1"}.items():
            patch.setenv(name, value)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.chdir(tmp_path_factory.mktemp("spark"))
        started = session.start_session("retries")
        yield started
        started.stop()


class City:
    """One publication from its broker to Kafka."""

    def __init__(self, home: Path, kafka: EmbeddedKafka) -> None:
        self.storage = Storage(str(home))
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.name = f"cars-{uuid4().hex[:8]}"
        self.folder = PublicationFolder(self.name)
        self.topic = f"topic-{self.name}"

    def publication(self, rule: str) -> Publication:
        return publication(
            name=self.name,
            source={"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
            topics={"naming": "fixed", "topics": [self.topic]},
            quality={"rules": {"number-string": rule}, "minimum_entities": 3, "max_quarantined_share": 0.5},
        )

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(self.settings, owner, interval)

    def ran(self, owner: Publication, **asked: Any) -> Manifest:
        """One run, task by task."""
        request = RunRequest(run_id=uuid4().hex, **asked)
        plan = settle(self.storage, owner, request, self.target, print)
        order = place_order(self.storage, owner, request, plan, self.target)
        stage.main(["--order", order.uri])
        staged = answer(self.storage, order, None)
        outboxes = Outboxes(self.storage, self.name)
        manifest = outboxes.manifest(staged.outbox)
        for shard in judge(self.storage, staged, dry_run=False, target_for=self.target, report=print):
            attempts = attempts_of(outboxes, manifest.outbox, shard, owner, report=print)
            send_shard(self.storage, manifest, shard, self.target(owner, None), attempts)
        assert conclude_run(self.storage, staged, self.target, print, now=datetime.now(UTC)) is not None
        return manifest

    def sent(self) -> list[tuple[str, object]]:
        """Id and speed of every record that a read-committed reader sees."""
        records = (orjson.loads(record.value) for record in read_committed(self.settings, [self.topic]) if record.value)
        return sorted((record["id"], record["speed"]["value"]) for record in records)


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(phases, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        broker.load(car(number, speed) for number, speed in enumerate([10, "11", 12]))
        connection = BrokerConnection(broker.url, timeout_seconds=5)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        yield City(tmp_path, kafka)


def car(number: int, speed: object) -> SeedEntity:
    moment = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": speed, "metadata": {}}}
    return SeedEntity("vehicles", "/4wheels", entity, moment, moment)


def test_a_relaxed_rule_and_a_retry_bring_the_refused_entity_to_kafka(city: City) -> None:
    first = city.ran(city.publication("error"))
    before = city.sent()

    again = city.ran(city.publication("warning"), retry_quarantine=first.outbox)
    after, pointer = city.sent(), State(city.storage, city.name).pointer()
    last = city.ran(city.publication("warning"))

    assert before == [("car0", 10), ("car2", 12)]
    assert after == [("car0", 10), ("car1", "11"), ("car2", 12)]
    assert (again.mode, again.read, again.records, again.retried) == ("changes", 1, 1, first.outbox)
    assert (pointer.outbox, pointer.watermark, pointer.identities) == (again.outbox, first.watermark, 3)
    quarantine = Quarantine(city.storage, city.folder, first.outbox)
    assert list(quarantine.retried().values()) == [again.outbox]
    assert len(quarantine.chosen(())) == 0
    assert (last.mode, last.records) == ("changes", 0)
    verdict = Verdict.model_validate_json(city.storage.read(city.folder.verdict(again.outbox)))
    judged = {result.name for result in verdict.results}
    assert judged & {"volume", "quarantined-share", "unique-identity"} == set()
    assert "id-present" in judged
