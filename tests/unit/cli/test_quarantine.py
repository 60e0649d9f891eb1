"""`contexture quarantine show`: counts and rows, escaped, bodies only when asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.outboxes import outbox, publication
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.schemas import QUARANTINE
from contexture.outbox.storage import Storage

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def refused(entity_id: str, rule: str, message: str = "wrong") -> dict[str, object]:
    return {
        "ordinal": 1,
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
    storage, owner = Storage(str(tmp_path)), publication()
    manifest = outbox(storage, owner, 1, [])
    rows = [
        refused("car1", "bool-string"),
        refused("car1", "number-string"),
        refused("car2\x1b[2J\u202e", "number-string"),
    ]
    folder = PublicationFolder(owner.name).quarantine(manifest.outbox)
    with storage.replacing(f"{folder}/0.parquet") as path:
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
    ]


def test_a_rule_and_a_limit_narrow_it_and_all_are_counted(contexture, held):
    done = contexture("quarantine", "show", "vehicles", "--outbox", held[:6], "--rule", "number-string", "--limit", "1")
    assert done.out.splitlines() == [
        "vehicles  number-string  2",
        f"{held[:12]}  /4wheels car1 car",
        "  number-string (error): wrong",
        "1 of 2 rows shown; --limit shows more",
    ]


def test_bodies_are_shown_only_when_asked_for(contexture, held):
    assert "secret" not in contexture("quarantine", "show", "--json").out
    rows = json.loads(contexture("quarantine", "show", "--json", "--bodies").out)["rows"]
    assert [row["body"] for row in rows] == ['{"plate":"secret"}'] * 3


def test_nothing_held_back_is_said(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    assert contexture("quarantine", "show").out == "nothing is held back in what is kept\n"


def test_a_publication_or_outbox_that_is_not_there_is_named(contexture, held):
    done = contexture("quarantine", "show", "city")
    assert (done.code, "publication city has no files" in done.err) == (2, True)
    done = contexture("quarantine", "show", "city", "--outbox", held)
    assert (done.code, "is one of vehicles, not of city" in done.err) == (2, True)
