"""Quarantined events from their run to Kafka: refused, tried again, sent and concluded, by the steps of the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from builders.outboxes import publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import read_committed
from contexture.publications import Publication
from contexture.sources.http.connection import BrokerConnection
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = pytest.mark.integration


class City(WholeRuns):
    """One publication from its broker to Kafka."""

    def publication(self, rule: str) -> Publication:
        return publication(
            name=self.name,
            source={"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
            topics={"naming": "fixed", "topics": [self.topic]},
            quality={"rules": {"number-string": rule}, "minimum_entities": 3, "max_quarantined_share": 0.5},
        )

    def sent(self) -> list[tuple[str, object]]:
        """Id and speed of every record that a read-committed reader sees."""
        records = (orjson.loads(record.value) for record in read_committed(self.settings, [self.topic]) if record.value)
        return sorted((record["id"], record["speed"]["value"]) for record in records)


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        broker.load(car(number, speed) for number, speed in enumerate([10, "11", 12]))
        connection = BrokerConnection(broker.url, timeout_seconds=60)
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
    after, pointer = city.sent(), city.storage.publication(city.name).state.pointer()
    last = city.ran(city.publication("warning"))

    assert before == [("car0", 10), ("car2", 12)]
    assert after == [("car0", 10), ("car1", "11"), ("car2", 12)]
    assert (again.mode, again.read, again.records, again.retried) == ("changes", 1, 1, first.outbox)
    assert (pointer.outbox, pointer.watermark, pointer.identities) == (again.outbox, first.watermark, 3)
    store = city.storage.publication(city.name)
    quarantine = store.quarantine(first.outbox)
    assert list(quarantine.retried().values()) == [again.outbox]
    assert len(quarantine.chosen(())) == 0
    assert (last.mode, last.records) == ("changes", 0)
    judged = {result.name for result in store.outbox(again.outbox).verdict().results}
    assert judged & {"volume", "quarantined-share", "unique-identity"} == set()
    assert "id-present" in judged
