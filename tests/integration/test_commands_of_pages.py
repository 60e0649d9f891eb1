"""What the pages say to type about topics, typed beside a real Kafka; only addresses and names are others."""

from __future__ import annotations

import json
import shutil
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from builders.kafka_runs import Instance
from builders.outboxes import Record, outbox, publication
from builders.pages import block
from builders.terminal import Terminal
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.records.messages import ngsi_bodies
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.ports import free_port

pytestmark = pytest.mark.integration

ADD, CYGNUS, STUCK = "how-to/add-a-publication.md", "how-to/move-from-cygnus.md", "how-to/stuck-outbox.md"
DEAD_LETTERS, RECOVER = "how-to/use-a-dead-letter-topic.md", "how-to/recover.md"
FILE = """
name: {name}
source: {{kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels}}
topics: {{naming: fixed, topics: [{name}], keep: latest}}
publish: {{on_failure: dead-letter}}
"""
HEADERS = [
    ("contexture_refused_error", b"MSG_SIZE_TOO_LARGE"),
    ("contexture_refused_message", b"too large"),
    ("contexture_refused_by", b"broker"),
    ("contexture_refused_topic", b"cars"),
    ("contexture_refused_outbox", b"abcd1234"),
    ("contexture_refused_shard", b"0"),
    ("contexture_refused_position", b"17"),
]


@pytest.fixture
def name() -> str:
    """Of a publication and its topic that no other test has."""
    return f"pages-{uuid4().hex[:8]}"


@pytest.fixture
def terminal(kafka: EmbeddedKafka, tmp_path, name: str) -> Terminal:
    """A terminal that knows Kafka, and the file of a publication."""
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / f"{name}.yaml").write_text(FILE.format(name=name))
    return Terminal(
        tmp_path,
        CONTEXTURE_HOME=str(tmp_path / "home"),
        CONTEXTURE_PUBLICATIONS=str(tmp_path / "publications"),
        AIRFLOW_CONN_KAFKA_DEFAULT=json.dumps({"conn_type": "kafka", "extra": kafka.client_settings()}),
    )


@pytest.fixture
def sent(kafka: EmbeddedKafka, terminal: Terminal, name: str) -> Instance:
    """Two cars that were published."""
    owner = publication(name=name, topics={"naming": "fixed", "topics": [name], "keep": "latest"})
    instance = Instance(kafka, terminal.folder, owner)
    instance.ran(outbox(instance.storage, owner, 1, [[car(name, 1), car(name, 2)]]))
    return instance


def car(topic: str, number: int) -> Record:
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": number, "metadata": {}}}
    return topic, f'["vehicles","/4wheels","car{number}","car"]'.encode(), json.dumps(entity).encode()


def test_topics_of_cygnus_are_compared_with_ours(kafka, terminal, name):
    script = block(CYGNUS, "contexture topics compare").replace("--prefix vehicles", f"--prefix {name}")
    ensure_topics(ClientSettings.from_extra(kafka.client_settings()), [TopicSpec(name)])
    producer = Producer(kafka.client_settings())
    entity = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 5, "metadata": {}}}
    producer.produce(name, ngsi_bodies.line(service="s", service_path="/", timestamp_ms=1, entity=entity))
    assert producer.flush(60) == 0
    own = script.replace("old:9092", kafka.bootstrap_servers).replace("new:9092", kafka.bootstrap_servers)
    assert "1 " in terminal.run(own).stdout


def test_dead_letters_are_read_with_their_reasons(kafka, terminal, name):
    topic = f"contexture.dead-letter.{name}"
    ensure_topics(ClientSettings.from_extra(kafka.client_settings()), [TopicSpec(topic)])
    producer = Producer(kafka.client_settings())
    producer.produce(topic, None, b"car1", headers=HEADERS)
    assert producer.flush(60) == 0
    printed = terminal.run(block(DEAD_LETTERS, "contexture dead-letters").replace("vehicles", name)).stdout.splitlines()
    assert "MSG_SIZE_TOO_LARGE by broker, intended for cars, no value, key car1" in printed[0]
    assert printed[1:] == ["  too large", "  outbox abcd1234, shard 0, position 17"]


@pytest.mark.usefixtures("sent")
def test_state_is_made_again_from_the_topics(terminal, name):
    shutil.rmtree(terminal.folder / "home")
    (terminal.folder / "home").mkdir()
    looked, made = block(RECOVER, "contexture state rebuild vehicles --dry-run").replace("vehicles", name).splitlines()
    assert "  2 identities were found that state does not hold (0 it does)" in terminal.run(looked).stdout.splitlines()
    assert "Write state?" in terminal.run(made, given="y\n").stdout
    assert terminal.json(f"contexture status {name}")["publications"][0]["identities"] == 2


def test_a_lost_ledger_is_written_anew(terminal, sent, name):
    sent.lose_ledger()
    script = block(STUCK, "contexture ledger rebuild vehicles --dry-run").replace("vehicles", name)
    looked, made = script.splitlines()
    terminal.run(looked)
    assert sent.rows() == {}
    terminal.run(made, given="y\n")
    assert sent.rows() == {0: ("outbox1", 1, 2)}


@pytest.mark.skipif(shutil.which("curl") is None, reason="the commands on the page need curl")
def test_a_broker_and_a_kafka_for_trying_are_started_and_tested(tmp_path):
    ports = {"1026": str(free_port()), "9092": str(free_port())}

    def own(documented: str) -> str:
        for documents, port in ports.items():
            documented = documented.replace(documents, port)
        return documented.replace(".venv/bin/python", "python")

    terminal = Terminal(tmp_path)
    terminal.set(own(block(ADD, "AIRFLOW_CONN_CITY_BROKER")))
    broker, kafka = own(block(ADD, "context-broker --port")).strip().splitlines()
    with terminal.beside(broker) as url, terminal.beside(kafka) as servers:
        assert (url, servers) == (f"http://127.0.0.1:{ports['1026']}", f"127.0.0.1:{ports['9092']}")
        terminal.run(own(block(ADD, "curl -sS")))
        terminal.run(block(ADD, "contexture connection test city_broker"))
    assert (tmp_path / "var" / "city-kafka").is_dir()
