"""`contexture dead-letters`: why records can never be sent, without their values."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contexture.cli.dead_letters import _document, _lines
from contexture.operations.actions.topic_reading import latest_records
from contexture.sending.dead_letters import RefusedRecord

FILE = "name: vehicles\nsource: {{kind: ngsi, connection: context_broker, service: a, service_path: /b}}\n{more}"
ASIDE = "publish: {on_failure: dead-letter}\n"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LETTER = RefusedRecord(
    NOON, "MSG_SIZE_TOO_LARGE", "too large", "broker", "cars", "outbox1", 2, 17, b"car1", 100, (0, 4)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path))
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT", raising=False)
    return tmp_path


def test_a_publication_that_stops_has_none(contexture, folder):
    (folder / "vehicles.yaml").write_text(FILE.format(more=""))
    done = contexture("dead-letters", "vehicles")
    assert done.code == 2
    assert "vehicles has no dead letters: what can never be sent stops it" in done.err


def test_what_is_missing_is_reported(contexture, folder):
    (folder / "vehicles.yaml").write_text(FILE.format(more=ASIDE))
    assert "there is no Kafka connection 'kafka_default'" in contexture("dead-letters", "vehicles").err
    trains = contexture("dead-letters", "trains")
    assert (trains.code, "choose among: vehicles" in trains.err) == (2, True)


def test_people_read_the_reason_and_the_place():
    assert list(_lines(LETTER)) == [
        "2026-03-01 12:00:00 UTC: MSG_SIZE_TOO_LARGE by broker, intended for cars, 100 bytes, key car1",
        "  too large",
        "  outbox outbox1, shard 2, position 17",
    ]
    assert next(_lines(replace(LETTER, at=None, key=None, value_bytes=None))) == (
        "at an unknown time: MSG_SIZE_TOO_LARGE by broker, intended for cars, no value, key none"
    )


def test_a_key_can_not_command_the_terminal():
    hostile = replace(LETTER, key=b"\x1b[2Jcar\n\xff" + b"x" * 200, message="a\rb")
    text = "\n".join(_lines(hostile))
    assert "key \\x1b[2Jcar\\n" in text
    assert "a\\rb" in text
    assert len(text.splitlines()) == 3
    assert "x" * 101 not in text


def test_scripts_get_the_same():
    assert json.loads(json.dumps(_document(LETTER))) == {
        "at": "2026-03-01T12:00:00+00:00",
        "error": "MSG_SIZE_TOO_LARGE",
        "message": "too large",
        "by": "broker",
        "topic": "cars",
        "outbox": "outbox1",
        "shard": 2,
        "position": 17,
        "key": "car1",
        "value_bytes": 100,
        "partition": 0,
        "offset": 4,
    }


def test_the_last_are_shown_in_the_order_of_their_times():
    first = replace(LETTER, position=1, place=(1, 0))
    later = replace(LETTER, position=2, at=NOON + timedelta(hours=1), place=(0, 0))
    undated = replace(LETTER, position=3, at=None)
    assert [each.position for each in latest_records([later, undated, first], 2)] == [1, 2]
