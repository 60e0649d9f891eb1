"""`contexture quarantine show`: counts and rows, escaped, bodies only when asked for."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication
from contexture.operations.airflow_client import AirflowClient
from contexture.storage.home import Home
from contexture.storage.schemas import QUARANTINE

CORRECT_THE_SOURCE = (
    "Next: correct them in their source, and the next run that reads them publishes them; where a rule is too strict, "
    "set it in quality.rules"
)
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def refused(entity_id: str, rule: str, message: str = "wrong", ordinal: int = 1) -> dict[str, object]:
    return {
        "ordinal": ordinal,
        "operation": "upsert",
        "scope": "vehicles",
        "path": "/4wheels",
        "id": entity_id,
        "type": "car",
        "body": b'{"plate":"secret"}',
        "received_at": NOON,
        "rule": rule,
        "severity": "error",
        "message": message,
    }


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An outbox whose run refused three rows."""
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    rows = [
        refused("car1", "bool-string"),
        refused("car1", "number-string"),
        refused("car2\x1b[2J\u202e", "number-string", ordinal=2),
    ]
    return hold(Home(str(tmp_path)), rows)


def hold(storage: Home, rows: list[dict[str, object]]) -> str:
    """An outbox with these rows in quarantine."""
    owner = publication()
    manifest = outbox(storage, owner, 1, [])
    folder = PublicationPaths(owner.name).quarantine(manifest.outbox)
    with storage.write_atomically(f"{folder}/0.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), path)
    return manifest.outbox


def test_counts_come_first_and_data_cannot_speak_to_the_terminal(contexture, held):
    done = contexture("quarantine", "show")
    assert done.code == 0
    assert done.out.splitlines() == [
        "vehicles  bool-string  1",
        "vehicles  number-string  2",
        f"{held[:12]}  /4wheels car1 car",
        "  bool-string (error): wrong",
        f"{held[:12]}  /4wheels car1 car",
        "  number-string (error): wrong",
        f"{held[:12]}  /4wheels car2\\x1b[2J\\u202e car",
        "  number-string (error): wrong",
        CORRECT_THE_SOURCE,
    ]


def test_a_rule_and_a_limit_narrow_it_and_all_are_counted(contexture, held):
    done = contexture("quarantine", "show", "vehicles", "--outbox", held[:6], "--rule", "number-string", "--limit", "1")
    assert done.out.splitlines() == [
        "vehicles  number-string  2",
        f"{held[:12]}  /4wheels car1 car",
        "  number-string (error): wrong",
        "1 of 2 rows shown; --limit shows more",
        CORRECT_THE_SOURCE,
    ]


def test_what_kafka_refuses_needs_another_step(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    hold(Home(str(tmp_path)), [refused("c" * 240, "topic-length", "has 288 characters; Kafka accepts 249")])
    assert contexture("quarantine", "show").out.splitlines()[-1] == (
        "Next: choose another topics.data_model or naming, or rename these entities in their source"
    )


def test_a_structure_is_shown_by_its_urn(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:CL_A(1.0)"
    row = {**refused(urn, "inexpressible"), "path": "", "type": "Codelist", "severity": "warning"}
    held = hold(Home(str(tmp_path)), [row])
    assert contexture("quarantine", "show").out.splitlines() == [
        "vehicles  inexpressible  1",
        f"{held[:12]}  {urn} Codelist",
        "  inexpressible (warning): wrong",
        "Next: set another source.media_type, or leave these structures out of source.select",
    ]


def test_bodies_are_shown_only_when_asked_for(contexture, held):
    assert "secret" not in contexture("quarantine", "show", "--json").out
    rows = json.loads(contexture("quarantine", "show", "--json", "--bodies").out)["rows"]
    assert [row["body"] for row in rows] == ['{"plate":"secret"}'] * 3


def test_nothing_held_back_is_said(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    assert contexture("quarantine", "show").out == "nothing is quarantined in the stored outboxes\n"


def test_a_rule_that_holds_nothing_back_says_nothing_of_others(contexture, held):
    shown = contexture("quarantine", "show", "--rule", "number-text").out
    assert shown == "nothing is quarantined in the stored outboxes by the rule number-text\n"


def test_a_publication_or_outbox_that_is_not_there_is_named(contexture, held):
    done = contexture("quarantine", "show", "city")
    assert (done.code, "publication city has no files" in done.err) == (2, True)
    done = contexture("quarantine", "show", "city", "--outbox", held)
    assert (done.code, "is one of vehicles, not of city" in done.err) == (2, True)


@pytest.fixture
def no_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTEXTURE_AIRFLOW_URL", raising=False)


@pytest.mark.usefixtures("no_airflow")
def test_without_airflows_address_the_command_to_start_is_printed(contexture, held):
    done = contexture("quarantine", "retry", held[:6], "--rule", "number-string", "--reason", "it's relaxed")

    first, command = done.out.splitlines()
    assert done.code == 0
    assert first.startswith(f"2 events of outbox {held} can be retried")
    *words, conf = shlex.split(command)
    assert words == ["airflow", "dags", "trigger", "publish_vehicles", "--conf"]
    assert json.loads(conf) == {
        "retry_quarantine": held,
        "retry_rules": ["number-string"],
        "reason": "it's relaxed",
    }


@pytest.mark.usefixtures("no_airflow")
def test_a_rule_that_quarantines_nothing_is_reported(contexture, held):
    done = contexture("quarantine", "retry", held, "--rule", "stale")
    assert (done.code, f"outbox {held} quarantined nothing by stale" in done.err) == (2, True)


def test_airflow_is_asked_for_the_run(contexture, held, monkeypatch):
    asked = []
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", "http://127.0.0.1:8080")
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_TOKEN", "t")
    monkeypatch.setattr(AirflowClient, "is_paused", lambda _self, dag: dag == "publish_vehicles")
    monkeypatch.setattr(AirflowClient, "trigger", lambda _self, dag, conf: asked.append((dag, conf)) or "manual__1")

    done = contexture("quarantine", "retry", held)

    assert asked == [("publish_vehicles", {"retry_quarantine": held})]
    assert done.out.splitlines() == [
        f"started publish_vehicles for 2 events of outbox {held}: "
        "http://127.0.0.1:8080/dags/publish_vehicles/runs/manual__1",
        "publish_vehicles is paused: the run waits until it is resumed (airflow dags unpause publish_vehicles)",
    ]


def test_what_was_tried_again_is_shown_only_when_asked_for(contexture, held, tmp_path):
    folder = PublicationPaths("vehicles")
    with Home(str(tmp_path)).write_atomically(f"{folder.retried(held)}/outbox2.parquet") as path:
        pq.write_table(pa.table({"ordinal": [1]}), path)

    assert contexture("quarantine", "show").out.splitlines()[0] == "vehicles  number-string  1"
    everything = contexture("quarantine", "show", "--all").out.splitlines()
    assert everything[:2] == ["vehicles  bool-string  1", "vehicles  number-string  2"]
    assert everything.count("  retried by outbox outbox2") == 2
    assert "can be retried" not in contexture("quarantine", "retry", held, "--rule", "bool-string").out
