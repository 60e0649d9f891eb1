"""`contexture topics compare` on a real broker."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from confluent_kafka import Producer

from contexture.cli import main
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.records.messages import ngsi_bodies
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def line(number: int, speed: object, moment: int = 1) -> bytes:
    entity = {"id": f"car{number}", "type": "car", "speed": {"type": "Number", "value": speed, "metadata": {}}}
    return ngsi_bodies.line(service="s", service_path="/", timestamp_ms=moment, entity=entity)


@pytest.fixture
def topics(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_CYGNUS", connection)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection)
    settings = ClientSettings.from_extra({"bootstrap.servers": kafka.bootstrap_servers})
    ensure_topics(settings, [TopicSpec(f"compare-{name}") for name in ("old", "new", "other")])
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("compare-old", ngsi_bodies.join([line(1, 5), line(2, 6)]))
    producer.produce("compare-old", line(1, 7, moment=2))
    producer.produce("compare-new", line(1, 7, moment=3), key=b"car1")
    producer.produce("compare-new", line(2, 6, moment=3), key=b"car2")
    producer.produce("compare-other", line(2, 8), key=b"car2")
    producer.flush(60)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, Any]:
    monkeypatch.setattr(sys, "argv", ["contexture", "topics", "compare", "--json", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), json.loads(printed.out) if printed.out else printed.err


@pytest.mark.usefixtures("topics")
def test_topics_that_hold_the_same_and_topics_that_do_not(capsys, monkeypatch):
    code, document = run(capsys, monkeypatch, "compare-old=compare-new")
    assert (code, document["alike"], document["equal"]) == (0, True, 2)
    assert document["left"] == {"entities": 2, "lines": 3, "unreadable": 0, "tombstones": 0}

    code, document = run(capsys, monkeypatch, "compare-old=compare-other")
    assert (code, document["alike"]) == (1, False)
    assert [each["id"] for each in document["only_left"]] == ["car1"]
    assert [(each["id"], each["differing"]) for each in document["differing"]] == [("car2", ["speed"])]

    code, document = run(capsys, monkeypatch, "--prefix", "compare-")
    assert (code, document["equal"], document["topics_only_left"]) == (0, 2, [])

    code, error = run(capsys, monkeypatch, "no-such-topic")
    assert (code, "1 topics do not exist" in error) == (2, True)
