"""Topics on a real broker, damaged on purpose, verified against what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
import yaml

from builders.layout import PublicationPaths
from builders.outboxes import Record, outbox, publication
from builders.plain_kafka import remove_topics
from builders.states import Held, state_table
from contexture.cli import main
from contexture.errors import ConfigurationError
from contexture.events import content_hash, parse_json
from contexture.kafka import ClientSettings
from contexture.kafka.admin import NewTopicOrder, TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.monitoring import RunTables
from contexture.operations.verification.result import VerificationResult
from contexture.operations.verification.topics import KafkaTopics
from contexture.operations.verification.verify import verify
from contexture.sending import Publisher, SenderNames
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

# A broker removes records on demand only where they may be deleted.
_CONFIG = {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}


class City:
    """A publication that has sent cars to a topic of its own."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka) -> None:
        self.name = f"verified-{uuid4().hex[:8]}"
        self.topic = f"cars-{self.name}"
        self.storage = Home(str(folder))
        self.publication = publication(name=self.name)
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.brokers = kafka.client_settings()
        admin = TopicAdmin(self.settings, BrokerWait(60.0))
        admin.create([NewTopicOrder(self.topic, 2, 1, _CONFIG)])
        admin.await_usable({self.topic: 2})

    def car(self, name: str, speed: int = 1) -> Record:
        return self.topic, name.encode(), f'{{"id":"{name}","speed":{speed}}}'.encode()

    def gone(self, name: str) -> Record:
        return self.topic, name.encode(), None

    def prepared(self, sequence: int, rows: list[Record]) -> Manifest:
        manifest = outbox(self.storage, self.publication, sequence, [rows])
        held = [Held(key.decode(), sequence=sequence, removed=value is None) for _, key, value in rows]
        table = state_table(held).to_pylist()
        for row, (topic, _, value) in zip(table, rows, strict=True):
            row["topics"] = [topic]
            row["content_hash"] = content_hash(parse_json(value)) if value else b"".ljust(32)
        delta = PublicationPaths(self.name).state_delta(manifest.outbox)
        with self.storage.write_atomically(f"{delta}/shard-00000.parquet") as path:
            pq.write_table(state_table([]).from_pylist(table, schema=state_table([]).schema), path)
        self.storage.publication(self.name).outboxes.set_status(manifest.outbox, "approved", reason="good")
        return manifest

    def send(self, manifest: Manifest) -> None:
        with_ledger = Publisher(self.settings, SenderNames(self.name), shards=1, broker_wait_seconds=60)
        with_ledger.publish(OutboxShardReader(self.storage, manifest, 0))

    def ran(self, sequence: int, rows: list[Record]) -> None:
        manifest = self.prepared(sequence, rows)
        self.send(manifest)
        conclude(self.storage.publication(manifest.publication), manifest, cluster=None, target=None)

    def slipped_in(self, *records: tuple[bytes, bytes | None, int]) -> None:
        """Another producer writes: keys, values and partitions."""
        from confluent_kafka import Producer

        producer = Producer(self.brokers)
        for key, value, partition in records:
            producer.produce(self.topic, value=value, key=key, partition=partition)
        assert producer.flush(60) == 0

    def verified(self) -> VerificationResult:
        return verify(
            self.storage.publication(self.publication.name),
            self.publication,
            KafkaTopics(self.settings, self.publication),
        )

    def partition_of(self, name: str) -> int:
        from contexture.kafka import partition_for

        return partition_for(name.encode(), 2)


@pytest.fixture
def city(tmp_path: Path, kafka: EmbeddedKafka) -> City:
    made = City(tmp_path, kafka)
    made.ran(1, [made.car(f"car{number}") for number in range(50)])
    made.ran(2, [made.car("car1", 2), made.gone("car2")])
    return made


def test_what_was_sent_is_equal(city: City) -> None:
    found = city.verified()

    assert found.differences == NOTHING
    assert (found.held, found.records, found.partitions) == (49, 52, 2)
    assert found.compared == {"bytes": 49}
    assert found.ledger == {0: 2}


def test_added_changed_and_deleted_records_are_found(city: City) -> None:
    city.slipped_in(
        (b"stranger", b"{}", 0),
        (b"car3", b'{"id":"car3","speed":9}', city.partition_of("car3")),
        (b"car4", None, city.partition_of("car4")),
        (b"car5", b'{"id":"car5","speed":1}', 1 - city.partition_of("car5")),
    )

    found = city.verified()

    assert found.differences == {"missing": 1, "extra": 1, "different": 0, "order": 3}
    assert {(sample.kind, sample.name) for sample in found.samples} == {
        ("missing", "car4"),
        ("extra", "stranger"),
        ("order", "car3"),
        ("order", "car5"),
    }


def test_removed_records_are_found(city: City) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    partition = city.partition_of("car0")
    admin = AdminClient(city.brokers)
    for future in admin.delete_records([TopicPartition(city.topic, partition, 5)]).values():
        future.result(timeout=60)
    sent = [name for name in (f"car{number}" for number in range(50)) if city.partition_of(name) == partition]
    # What the second run has sent again or deleted is not lost with its first record.
    lost = set(sent[:5]) - {"car1", "car2"}

    found = city.verified()

    assert lost != set()
    assert {sample.name for sample in found.samples} == lost
    assert found.differences == {**NOTHING, "missing": len(lost)}
    assert {sample.detail for sample in found.samples} == {"no record has its key"}


def test_a_topic_that_was_removed_is_found(city: City) -> None:
    remove_topics(city.brokers, city.topic)

    found = city.verified()

    assert found.missing_topics == (city.topic,)
    assert found.differences == {**NOTHING, "missing": 49}


def test_sending_meanwhile_raises_no_false_alarm(city: City) -> None:
    manifest = city.prepared(3, [city.car("car1", 3), city.gone("car3"), city.car("new")])
    assert city.verified().differences == NOTHING

    city.send(manifest)
    assert city.verified().differences == NOTHING

    conclude(city.storage.publication(manifest.publication), manifest, cluster=None, target=None)
    assert city.verified().differences == NOTHING
    assert city.verified().unjudged == {}


@pytest.mark.airflow
def test_the_task_returns_counts_and_fails_where_topics_differ(
    city: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    pytest.importorskip("airflow.sdk")
    from contexture_airflow.operators.verify_replica import VerifyReplicaOperator

    file = tmp_path / "publications" / f"{city.name}.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(city.publication.model_dump(mode="json", exclude_defaults=True)))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(file.parent))
    monkeypatch.setenv("CONTEXTURE_HOME", city.storage.root)
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    connection = {"conn_type": "kafka", "extra": city.brokers}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    task = VerifyReplicaOperator(task_id="verify", publication=city.name)

    counts = task.execute({})  # type: ignore[typeddict-item]

    assert (counts["equal"], counts["held"], counts["records"]) == (True, 49, 52)
    city.slipped_in((b"stranger", b"{}", 0))
    with pytest.raises(ConfigurationError, match="1 extra, of 49 keys"):
        task.execute({})  # type: ignore[typeddict-item]
    assert "stranger" in Path(str(task.report_path)).read_text()
    store = RunTables.of_home(city.storage.root)
    assert store is not None
    row = store.last_verification(city.name)
    store.close()
    assert row is not None
    assert (row.equal, row.extra) == (False, 1)


def test_the_command_line_sees_the_same(
    city: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{city.name}.yaml"
    file.write_text(yaml.safe_dump(city.publication.model_dump(mode="json", exclude_defaults=True)))
    monkeypatch.setenv("CONTEXTURE_HOME", city.storage.root)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": city.brokers}))
    monkeypatch.setattr("sys.argv", ["contexture", "verify", city.name, "--files", str(file), "--json"])

    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 0
    assert json.loads(capsys.readouterr().out)["equal"] is True


def test_an_open_transaction_is_neither_waited_for_nor_looked_at(city: City, opened: Any) -> None:
    opened(city.topic, b"car6", b"{}", city.partition_of("car6"))

    assert city.verified().differences == NOTHING


@pytest.fixture
def opened(kafka: EmbeddedKafka) -> Iterator[Any]:
    """Begins a transaction, and aborts it in the end."""
    from confluent_kafka import Producer

    producer = Producer({**kafka.client_settings(), "transactional.id": f"open-{uuid4().hex[:8]}"})
    producer.init_transactions(60)

    def produce(topic: str, key: bytes, value: bytes, partition: int) -> None:
        producer.begin_transaction()
        producer.produce(topic, value=value, key=key, partition=partition)
        producer.flush(60)

    yield produce
    producer.abort_transaction(60)
