"""`contexture topics plan` and `apply` on a real broker."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from contexture.cli import main
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

PUBLICATION = """
name: planned
schedule: null
source: {kind: ngsi, connection: broker, service: s, service_path: /a}
topics: {naming: fixed, topics: [plan-a, plan-b, plan-new], partitions: 3, config: {retention.ms: "86400000"}}
publish: {connection: kafka_default}
"""


@pytest.fixture
def folder(kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap_servers}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    (tmp_path / "planned.yaml").write_text(PUBLICATION)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, Any]:
    monkeypatch.setattr(sys, "argv", ["contexture", "topics", *arguments, "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    return int(end.value.code or 0), json.loads(printed.out)["connections"][0] if printed.out else printed.err


def test_topics_are_brought_to_what_a_publication_says(kafka, folder, capsys, monkeypatch):
    settings = ClientSettings.from_extra({"bootstrap.servers": kafka.bootstrap_servers})
    ensure_topics(settings, [TopicSpec("plan-a", 2, 1, keep="latest"), TopicSpec("plan-b", 3, 1, keep="history")])
    file = str(folder / "planned.yaml")

    code, found = run(capsys, monkeypatch, "plan", file)
    assert (code, found["missing"], found["alike"]) == (1, ["plan-new"], 0)
    assert [(each["topic"], each["setting"], each["way"]) for each in found["changes"]] == [
        ("plan-a", "partitions", "grow, keys move"),
        ("plan-a", "retention.ms", "configure"),
        ("plan-b", "cleanup.policy", "configure"),
        ("plan-b", "retention.ms", "configure"),
    ]

    code, printed = run(capsys, monkeypatch, "apply", file)
    assert (code, "confirm with --grow-keyed" in printed) == (2, True)
    admin = TopicAdmin(settings, BrokerWait(60))
    assert admin.listed()["plan-a"].partitions == 2
    assert admin.configs(["plan-b"])["plan-b"]["cleanup.policy"] == "delete"

    code, found = run(capsys, monkeypatch, "apply", "--grow-keyed", file)
    assert (code, {each["changed"] for each in found["changes"]}) == (0, {True})
    assert admin.listed()["plan-a"].partitions == 3
    assert admin.configs(["plan-b"])["plan-b"]["cleanup.policy"] == "compact"
    assert admin.configs(["plan-a"])["plan-a"]["retention.ms"] == "86400000"

    code, found = run(capsys, monkeypatch, "plan", file)
    assert (code, found["alike"], found["changes"]) == (0, 2, [])


def test_what_can_not_be_changed_is_left_to_a_person(kafka, folder, capsys, monkeypatch):
    settings = ClientSettings.from_extra({"bootstrap.servers": kafka.bootstrap_servers})
    config = {"retention.ms": "86400000"}
    ensure_topics(settings, [TopicSpec("plan-many", 5, 1, config, keep="latest")])
    (folder / "planned.yaml").write_text(PUBLICATION.replace("plan-a, plan-b, plan-new", "plan-many"))
    code, found = run(capsys, monkeypatch, "apply", str(folder / "planned.yaml"))
    [change] = found["changes"]
    assert (code, change["way"], change["changed"]) == (1, "by hand", False)
    assert "Kafka cannot remove partitions" in change["advice"]
