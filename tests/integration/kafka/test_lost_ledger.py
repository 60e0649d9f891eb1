"""A lost ledger: refused, rebuilt from the topics, and sending goes on without loss or doubles."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from builders.kafka_runs import Instance
from builders.outboxes import outbox, publication, records
from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from contexture.cli import main
from contexture.kafka import read_committed
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import KafkaConfigurationError, LedgerLostError
from contexture.publications import Publication
from contexture.sending import SenderNames
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

CARS = """
name: {name}
schedule: null
source: {{kind: ngsi, connection: broker, service: vehicles, service_path: /4wheels}}
"""
CODELISTS = """
name: {name}
schedule: null
source: {{kind: sdmx, connection: registry, select: ["*"]}}
topics: {{naming: fixed, topics: [{topic}], keep: latest}}
message: {{format: sdmx}}
"""


@pytest.fixture
def cli(kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))

    def run(*arguments: str) -> tuple[int, Any]:
        monkeypatch.setattr(sys, "argv", ["contexture", "ledger", "rebuild", *arguments, "--json"])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return int(end.value.code or 0), json.loads(printed.out) if printed.out else printed.err

    return run


def instance(kafka: EmbeddedKafka, folder: Path, owner: Publication, text: str) -> Instance:
    (folder / "publications").mkdir()
    (folder / "publications" / "publication.yaml").write_text(text)
    return Instance(kafka, folder, owner)


def test_an_outbox_that_is_half_sent_goes_on_where_the_topics_say(kafka: EmbeddedKafka, tmp_path: Path, cli) -> None:
    name = f"lost-{uuid4().hex[:8]}"
    city = instance(kafka, tmp_path, publication(name=name), CARS.format(name=name))
    topic = f"topic-{name}"
    city.ran(outbox(city.storage, city.owner, 1, [records("car1", topic=topic), records("car2", topic=topic)]))
    changed = [[(topic, b"car1", b"new")], [(topic, b"car2", b"new"), (topic, b"car3", b"new")]]
    half = outbox(city.storage, city.owner, 2, changed)
    city.judged(half)
    city.sent(half, 0)
    city.lose_ledger()

    with pytest.raises(LedgerLostError, match="does not exist any more"):
        city.settled()
    code, planned = cli(name, "--dry-run")
    assert (code, planned["lost"], planned["written"]) == (0, "does not exist", False)
    assert [each["why"] for each in planned["shards"]] == [
        "1 of 1 transactions of outbox outbox2 are in Kafka",
        "0 of 1 transactions of outbox outbox2 are in Kafka",
    ]
    with pytest.raises(LedgerLostError):
        city.settled()

    code, written = cli(name, "--yes")
    assert (code, written["written"], {each["uncertain_transactions"] for each in written["shards"]}) == (0, True, {0})
    assert city.rows() == {0: ("outbox2", 2, 1), 1: ("outbox1", 1, 1)}
    city.settled()

    found = [(record.key, record.value) for record in read_committed(city.settings, [topic])]
    assert sorted(found) == sorted(
        [
            (b"car1", b'{"id":"car1"}'),
            (b"car2", b'{"id":"car2"}'),
            (b"car1", b"new"),
            (b"car2", b"new"),
            (b"car3", b"new"),
        ]
    )
    assert city.outboxes.status("outbox2").status == "concluded"
    code, refused = cli(name, "--yes")
    assert (code, "is not lost" in refused) == (2, True)


def test_a_registrys_log_goes_on_after_the_last_transaction_in_the_topic(
    kafka: EmbeddedKafka, tmp_path: Path, cli
) -> None:
    name = f"lost-{uuid4().hex[:8]}"
    topic = f"topic-{name}"
    text = CODELISTS.format(name=name, topic=topic)
    registry = instance(kafka, tmp_path, structures(name, topic), text)
    log = [
        RegistryChange(1, ("A", "B")),
        RegistryChange(2, ("C",)),
        RegistryChange(3, ("A",)),
        RegistryChange(3, ("B",), deletions=True),
    ]
    registry.ran(registry_outbox(registry.storage, registry.owner, 1, log[:1], name="first"))
    part = registry_outbox(registry.storage, registry.owner, 2, log[1:3], name="part")
    registry.judged(part)
    registry.sent(part, 0)
    registry.lose_ledger()

    code, written = cli(name, "--yes")
    assert code == 0
    assert written["shards"][0]["why"] == "sent up to registry transaction 3; 2 of 2 are in Kafka"
    registry.settled()
    registry.ran(registry_outbox(registry.storage, registry.owner, 3, log[1:], name="rest"))

    found = [(record.key, record.value) for record in read_committed(registry.settings, [topic])]
    assert found == [record for change in log for record in change.records()]


def half_sent(kafka: EmbeddedKafka, folder: Path, name: str) -> Instance:
    """A city whose second outbox has sent the first of its two shards."""
    city = instance(kafka, folder, publication(name=name), CARS.format(name=name))
    topic = f"topic-{name}"
    city.ran(outbox(city.storage, city.owner, 1, [records("car1", topic=topic), records("car2", topic=topic)]))
    half = outbox(city.storage, city.owner, 2, [[(topic, b"car1", b"new")], [(topic, b"car2", b"new")]])
    city.judged(half)
    city.sent(half, 0)
    return city


def values(city: Instance) -> list[bytes | None]:
    return sorted(record.value or b"" for record in read_committed(city.settings, [f"topic-{city.name}"]))


def test_records_deleted_from_one_partition_of_the_ledger_are_noticed_while_an_outbox_is_half_sent(
    kafka: EmbeddedKafka, tmp_path: Path, cli
) -> None:
    city = half_sent(kafka, tmp_path, f"lost-{uuid4().hex[:8]}")
    ledger = SenderNames(city.name).ledger_topic
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    topics = TopicAdmin(city.settings, BrokerWait(60.0))
    # Kafka deletes no records of a topic that is only compacted.
    topics.configure({ledger: {"cleanup.policy": "delete"}})
    (deleted,) = admin.delete_records([TopicPartition(ledger, 0, OFFSET_END)]).values()
    deleted.result()
    topics.configure({ledger: {"cleanup.policy": "compact"}})
    before = values(city)

    with pytest.raises(LedgerLostError, match="holds nothing of shard 0 any more"):
        city.settled()
    with pytest.raises(LedgerLostError, match="holds nothing of shard 0 any more"):
        city.sent(city.outboxes.manifest("outbox2"), 0)
    assert values(city) == before

    code, planned = cli(city.name, "--yes")
    assert (code, planned["lost"]) == (0, "holds nothing of shards 0")
    city.settled()
    assert values(city) == [b"new", b"new", b'{"id":"car1"}', b'{"id":"car2"}']


def test_a_ledger_of_which_kafka_removes_rows_is_noticed_while_an_outbox_is_half_sent(
    kafka: EmbeddedKafka, tmp_path: Path, cli
) -> None:
    city = half_sent(kafka, tmp_path, f"lost-{uuid4().hex[:8]}")
    ledger = SenderNames(city.name).ledger_topic
    admin = TopicAdmin(city.settings, BrokerWait(60.0))
    admin.configure({ledger: {"cleanup.policy": "delete"}})

    with pytest.raises(KafkaConfigurationError, match=r"cleanup\.policy=delete") as refused:
        city.settled()
    assert f"--entity-name {ledger} --add-config cleanup.policy=compact" in refused.value.next_step

    admin.configure({ledger: {"cleanup.policy": "compact"}})
    city.settled()
    assert values(city) == [b"new", b"new", b'{"id":"car1"}', b'{"id":"car2"}']
