"""From a broker's HTTP notification to topics on a real Kafka: posted, staged, published, concluded, read back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest

from builders.notifying import HEADERS, body, entity, gone
from builders.outboxes import publication
from builders.reception_server import serving
from contexture.java.runtime import find_java
from contexture.kafka import ClientSettings, read_committed
from contexture.publications import Publication
from contexture.reception import Credentials
from contexture.reception.targets import Inboxes, target_of
from contexture.sending.target import KafkaTarget, Target
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.archive import Interval
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageResult
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import place_order, read_staged_outbox
from contexture_sandbox.context_broker import SeedEntity, TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import stage

pytestmark = pytest.mark.integration

TOKEN = {"Authorization": "Bearer s3cret"}
RECORDED = Path(__file__).parents[1] / "samples" / "orion" / "notifications.json"


class Cars:
    """One publication that is notified, from its endpoint to its topic; names are its own, for Kafka is shared."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, url: str, name: str) -> None:
        self.name = name
        self.storage = Home(str(home))
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.outboxes = self.storage.publication(name).outboxes
        self.publication = cars(name)
        self.url = url
        self.runs = 0
        self.log: list[str] = []

    def post(self, *bodies: bytes) -> list[int]:
        return [httpx.post(self.url, content=each, headers=HEADERS | TOKEN).status_code for each in bodies]

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(self.settings, owner, interval, self.log.append)

    def run(self, mode: str = "auto") -> Manifest:
        """A whole run, task by task."""
        self.runs += 1
        request = RunRequest.model_validate({"run_id": f"run{self.runs}", "mode": mode})
        plan = finish_open_transaction(
            self.storage.publication(self.publication.name), self.publication, request, self.target, self.log.append
        )
        order = place_order(
            self.storage.publication(self.publication.name), self.publication, request, plan, self.target
        )
        assert stage.main(["--order", order.uri]) == 0, StageResult.model_validate_json(
            self.storage.read(f"{self.name}/runs/{plan.run}/result.json")
        ).error
        staged = read_staged_outbox(self.storage.publication(order.publication), order, None)
        for shard in apply_verdict(
            self.storage.publication(staged.publication),
            staged,
            dry_run=False,
            target_for=self.target,
            report=self.log.append,
        ):
            self.send(staged, shard)
        assert (
            conclude_run(
                self.storage.publication(staged.publication),
                staged,
                self.target,
                self.log.append,
                now=datetime.now(UTC),
            )
            is not None
        )
        return self.outboxes.manifest(staged.outbox)

    def send(self, staged: StagedOutbox, shard: int) -> None:
        target = self.target(self.publication, None)
        attempts = build_shard_attempts(
            self.storage.publication(staged.publication), staged.outbox, shard, self.publication, report=self.log.append
        )
        send_shard(
            self.storage.publication(staged.publication), self.outboxes.manifest(staged.outbox), shard, target, attempts
        )

    def speeds(self) -> list[tuple[str, Any]]:
        """Returns id and speed of each record in the topic, in order; None for a tombstone."""
        return [(orjson.loads(each.key or b"")[2], speed(each.value)) for each in self.records()]

    def records(self) -> list[Any]:
        return list(read_committed(self.settings, [self.name]))


def cars(name: str) -> Publication:
    source = {
        "kind": "ngsi",
        "connection": "context_broker",
        "service": "vehicles",
        "service_path": "/4wheels",
        "types": ["car"],
        "mode": "notifications",
    }
    topics = {"naming": "fixed", "topics": [name], "keep": "latest"}
    return publication(name=name, source=source, topics=topics, publish={"shards": 1})


def speed(value: bytes | None) -> float | None:
    return None if value is None else orjson.loads(value)["speed"]["value"]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestBroker]:
    # Spark's own processes look for Python and Java where this one does.
    for name, value in find_java().environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with TestBroker() as started:
        connection = BrokerConnection(started.url, timeout_seconds=60)
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", connection.to_json())
        yield started


@pytest.fixture
def notified(tmp_path: Path, kafka: EmbeddedKafka, broker: TestBroker) -> Iterator[Cars]:
    name = f"cars-{uuid4().hex[:8]}"
    inboxes = Inboxes(Home(str(tmp_path)))
    target = target_of(cars(name), Credentials.of(tokens=["s3cret"]), inboxes)
    with serving({name: target}) as url:
        yield Cars(tmp_path, kafka, f"{url}/contexture/notify/{name}", name)
    inboxes.close()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_a_broker_notifies_is_in_kafka_once_and_in_order(notified: Cars, broker: TestBroker) -> None:
    broker.load(SeedEntity("vehicles", "/4wheels", entity(number, speed=number)) for number in (1, 2))
    first = notified.run()
    assert (first.mode, sorted(notified.speeds())) == ("full", [("car1", 1), ("car2", 2)])

    bodies = [body(entity(1, speed=10)), body(entity(2, speed=2)), body(entity(1, speed=1)), body(gone(2))]
    assert notified.post(*bodies) == [200, 200, 200, 200]
    second = notified.run()
    assert (second.mode, second.read, second.unchanged, second.upserts, second.deletes) == ("notifications", 4, 1, 2, 1)
    assert notified.speeds()[2:] == [("car1", 10), ("car1", 1), ("car2", None)]

    assert notified.run().records == 0
    assert len(notified.records()) == 5

    repaired = notified.run("full")
    assert (repaired.mode, sorted(notified.speeds()[5:])) == ("full", [("car1", 1), ("car2", 2)])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_recorded_notifications_of_an_orion_are_sent(notified: Cars, broker: TestBroker) -> None:
    broker.load([SeedEntity("vehicles", "/4wheels", entity(9, speed=9))])
    notified.run()
    recorded = orjson.loads(RECORDED.read_bytes())
    bodies = [orjson.dumps(each["body"]) for each in recorded]
    for each, content in zip(recorded, bodies, strict=True):
        headers = {name: value for name, value in each["headers"].items() if name not in {"Host", "Content-Length"}}
        assert httpx.post(notified.url, content=content, headers=headers | TOKEN).status_code == 200

    manifest = notified.run()

    # The last two repeat earlier ones: without alterationType a deletion looks like an update.
    assert (manifest.read, manifest.unchanged, manifest.upserts) == (9, 2, 7)
    assert notified.speeds() == [
        ("car9", 9),
        ("car1", 112.9),
        *((f"car{number}", 10 * number) for number in range(2, 8)),
    ]
