"""The ways back of docs/how-to/recover.md, walked: a topic, the storage, or a part of its past is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from builders.outboxes import publication
from builders.plain_kafka import remove_topics
from builders.whole_runs import Lasting, WholeRuns
from contexture.cli import state
from contexture.kafka import read_committed
from contexture.operations.verification.topics import KafkaTopics
from contexture.operations.verification.verify import verify
from contexture.sources.http.connection import BrokerConnection
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import pipeline

pytestmark = pytest.mark.integration

CARS = """
name: {name}
source: {{kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels}}
topics: {{naming: fixed, topics: [{topic}], keep: latest}}
"""


class City(WholeRuns):
    """A replica of some cars."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, broker: TestBroker) -> None:
        super().__init__(home, kafka)
        self.broker = broker
        self.brokers = kafka.client_settings()
        self.cars = publication(
            name=self.name,
            source={"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "service_path": "/4wheels"},
            topics={"naming": "fixed", "topics": [self.topic], "keep": "latest"},
        )

    def remove(self, name: str) -> None:
        headers = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/4wheels"}
        httpx.delete(f"{self.broker.url}/v2/entities/{name}", headers=headers).raise_for_status()

    def rebuilt(self, *options: str) -> dict[str, Any]:
        """What `contexture state rebuild` says, and writes."""
        done = CliRunner().invoke(state.app, ["rebuild", self.name, "--yes", "--json", *options])
        assert done.exit_code == 0, done.output
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def remove_topic(self) -> None:
        remove_topics(self.brokers, self.topic)

    def differences(self) -> dict[str, int]:
        found = verify(self.storage.publication(self.cars.name), self.cars, KafkaTopics(self.settings, self.cars))
        return {kind: count for kind, count in found.differences.items() if count}

    def replica(self) -> set[str]:
        """Who is there for a consumer that keeps the newest record of each key."""
        newest = {record.key: record.value for record in read_committed(self.settings, [self.topic])}
        return {
            name for name in ("car0", "car1", "car2", "car3") for key in newest if name.encode() in key and newest[key]
        }


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[City]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestBroker() as broker:
        broker.load(car(number) for number in range(3))
        connection = BrokerConnection(broker.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        made = City(tmp_path / "home", kafka, broker)
        (tmp_path / "publications").mkdir()
        (tmp_path / "publications" / "cars.yaml").write_text(CARS.format(name=made.name, topic=made.topic))
        kafka_connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka_connection))
        monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
        made.ran(made.cars)
        yield made


def car(number: int) -> SeedEntity:
    moment = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": number, "metadata": {}}}
    return SeedEntity("vehicles", "/4wheels", entity, moment, moment)


def test_a_lost_topic_is_made_again_by_a_full_run(city: City) -> None:
    city.remove_topic()
    assert city.differences() == {"missing": 3}

    city.ran(city.cars, mode="full")

    assert city.differences() == {}
    assert city.replica() == {"car0", "car1", "car2"}


def test_without_its_storage_the_next_run_sends_all_and_what_vanished_meanwhile_is_shown(city: City) -> None:
    city.ran(city.cars)
    shutil.rmtree(city.storage.root)
    city.remove("car1")

    again = city.ran(city.cars)

    # Kafka knows that there were two runs before.
    assert (again.mode, again.sequence, again.records) == ("full", 3, 2)
    assert city.replica() == {"car0", "car1", "car2"}
    assert city.differences() == {"extra": 1}

    # It is not too late then.
    assert (city.rebuilt()["found"], city.rebuilt()["found"]) == (1, 0)
    sequences = [city.ran(city.cars, mode="full").sequence for _ in range(2)]

    assert sequences == [4, 5]
    assert city.differences() == {}
    assert city.replica() == {"car0", "car2"}


@pytest.mark.parametrize(("options", "sent"), [((), (2, 3)), (("--only-differences",), (0, 1))])
def test_state_made_from_the_topics_deletes_what_vanished_meanwhile(
    city: City, options: tuple[str, ...], sent: tuple[int, int]
) -> None:
    shutil.rmtree(city.storage.root)
    city.remove("car1")

    found = city.rebuilt(*options)
    assert (found["found"], found["with_content"], found["held"], found["written"]) == (3, 3, 0, True)
    assert city.differences() == {}
    # An absence is believed when it was seen twice, as ever.
    runs = [city.ran(city.cars, mode=mode) for mode in (("auto", "full") if not options else ("auto", "auto"))]

    assert tuple(run.records for run in runs) == sent
    assert [run.sequence for run in runs] == [2, 3]
    assert city.differences() == {}
    assert city.replica() == {"car0", "car2"}


def test_from_a_copy_of_its_storage_of_before_it_finds_back_by_itself(city: City, tmp_path: Path) -> None:
    shutil.copytree(city.storage.root, tmp_path / "copy")
    city.broker.load([car(3)])
    city.remove("car1")
    for _ in range(2):
        last = city.ran(city.cars)
    assert (last.sequence, city.replica()) == (3, {"car0", "car2", "car3"})

    shutil.rmtree(city.storage.root)
    shutil.copytree(tmp_path / "copy", city.storage.root)
    sequences = [city.ran(city.cars, mode="full").sequence for _ in range(2)]

    assert sequences == [4, 5]
    assert city.replica() == {"car0", "car2", "car3"}
    assert city.differences() == {}
    assert city.storage.publication(city.name).state.pointer().identities == 3
