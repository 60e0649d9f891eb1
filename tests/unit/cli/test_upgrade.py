"""`contexture upgrade` says what it finds, changes it once, and lets neither runs nor later formats be overwritten."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from builders.homes import former_home
from builders.tables import execute, former_tables, rows
from contexture.cli.airflow import Airflow
from contexture.cli.airflow_access import AirflowAccess
from contexture.cli.installation_points import installation_points
from contexture.operations import database
from contexture.outbox.state import State
from contexture.outbox.storage import Storage

RUNNING = (
    "INSERT INTO runs (publication, run, run_id, state, started_ms) "
    "VALUES ('vehicles', 'r', 'scheduled__2', 'running', 1)"
)


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    for name in ("CONTEXTURE_DATABASE", "CONTEXTURE_AIRFLOW_URL", "AIRFLOW_CONN_KAFKA_DEFAULT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    storage = former_home("first-release", tmp_path)
    monkeypatch.setenv("CONTEXTURE_HOME", storage.root)
    return storage


def url(storage: Storage) -> str:
    return f"sqlite:///{storage.root}/operations.sqlite"


def state_format(storage: Storage) -> int:
    return State(storage, "vehicles").pointer().format


def test_what_would_be_done_is_told_and_not_done(contexture, storage):
    former_tables(url(storage), 2)
    done = contexture("upgrade", "--dry-run")
    assert done.code == 1
    assert done.out.splitlines() == [
        f"{storage.root}:",
        "  vehicles: state: no format, 1 file, now 3: written anew as one sorted file",
        "  vehicles: outbox manifest: format 1, 3 files",
        "  vehicles: outbox status: no format, 3 files, now 1: marked with its format",
        "  vehicles: landing manifest: no format, 3 files, now 1: marked with its format",
        "  vehicles: verdict: no format, 3 files, now 1: marked with its format",
        "  operational tables: format 0002, now 0007: brought up by their steps",
        "nothing was changed; without --dry-run this is done",
    ]
    assert state_format(storage) == 1
    assert rows(url(storage), "SELECT max(version) FROM schema_version") == [(2,)]


def test_a_home_without_files_may_be_the_wrong_one(contexture, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "misspelt"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    done = contexture("upgrade")
    assert done.code == 0
    assert "  no publication has files there: is CONTEXTURE_HOME as Airflow has it?" in done.out.splitlines()


def test_it_is_done_once(contexture, storage):
    former_tables(url(storage), 2)
    first, second = contexture("upgrade"), contexture("upgrade")
    assert (first.code, first.out.splitlines()[-1]) == (0, "done")
    assert state_format(storage) == 3
    assert rows(url(storage), "SELECT version_num FROM contexture_alembic_version") == [("0007",)]
    assert rows(url(storage), "SELECT count(*) FROM transactions") == [(2,)]
    assert (second.code, second.out.splitlines()[-1]) == (0, "everything is of this Contexture's formats")


def test_scripts_get_one_document(contexture, storage):
    document = json.loads(contexture("upgrade", "--dry-run", "--json").out)
    assert (document["home"], document["dry_run"], document["outdated"]) == (storage.root, True, True)
    assert document["found"][0] == {
        "publication": "vehicles",
        "what": "state",
        "found": "",
        "current": "3",
        "files": 1,
        "todo": "written anew as one sorted file",
        "note": "",
    }
    assert document["found"][-1]["note"] == "not there yet: the first run makes them"


def test_tables_that_are_not_there_are_not_made(contexture, storage):
    assert contexture("upgrade").code == 0
    assert not (Path(storage.root) / "operations.sqlite").exists()


def test_a_run_that_is_under_way_is_waited_for_by_the_operator(contexture, storage):
    former_tables(url(storage), 5)
    execute(url(storage), RUNNING)
    done = contexture("upgrade")
    assert done.code == 2
    assert "runs are under way: vehicles (scheduled__2). Next: let their runs end and pause these" in done.err
    assert state_format(storage) == 1
    assert contexture("upgrade", "--stopped").code == 0
    assert state_format(storage) == 3


def test_tables_that_somebody_holds_are_told_and_brought_up_later(contexture, storage, monkeypatch):
    former_tables(url(storage), 2)
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.05)
    monkeypatch.setattr(database, "_MIGRATION_SECONDS", 0.1)
    with closing(sqlite3.connect(f"{storage.root}/operations.sqlite", isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode=WAL")
        holder.execute("BEGIN IMMEDIATE")
        refused = contexture("upgrade")
    assert refused.code == 3
    assert "could not be brought to version 0007 (OperationalError). Next: see that" in refused.err
    assert contexture("upgrade").code == 0
    assert rows(url(storage), "SELECT version_num FROM contexture_alembic_version") == [("0007",)]


def test_airflow_is_asked_where_it_is_known():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        runs = [{"dag_id": "publish_cars", "dag_run_id": "m1"}, {"dag_id": "verify_replica", "dag_run_id": "m2"}]
        if request.url.params["cursor"] == "":
            return httpx.Response(200, json={"dag_runs": runs, "next_cursor": "a+b="})
        last = [{"dag_id": "publish_vans", "dag_run_id": "m1"}]
        return httpx.Response(200, json={"dag_runs": last, "next_cursor": None})

    airflow = Airflow(AirflowAccess(url="http://127.0.0.1:8080", token="t"), httpx.MockTransport(answer))
    assert airflow.active_publications() == [("cars", "m1"), ("vans", "m1")]
    assert asked == [
        "/api/v2/dags/~/dagRuns?state=running&state=queued&limit=100&cursor=",
        "/api/v2/dags/~/dagRuns?state=running&state=queued&limit=100&cursor=a%2Bb%3D",
    ]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_a_home_of_a_later_contexture_is_refused(contexture, storage, dry):
    path = "vehicles/state/CURRENT"
    storage.write(path, json.dumps(json.loads(storage.read(path)) | {"format": 4}).encode())
    done = contexture("upgrade", *dry)
    assert done.code == 2
    assert "this home was written by a later Contexture: state vehicles/state/CURRENT is of format 4" in done.err
    assert "Next: install that Contexture here too, or go back to the copy" in done.err


def test_tables_of_a_later_contexture_keep_files_from_being_changed(contexture, storage):
    former_tables(url(storage), 5)
    execute(
        url(storage),
        "CREATE TABLE contexture_alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO contexture_alembic_version VALUES ('0008')",
    )
    done = contexture("upgrade")
    assert (done.code, "were written by a later Contexture: they are of version 0008" in done.err) == (2, True)
    assert state_format(storage) == 1


def test_a_ledger_whose_connection_is_not_here_is_not_looked_at(contexture, storage, tmp_path):
    folder = tmp_path / "publications"
    folder.mkdir()
    source = "{kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels}"
    (folder / "vehicles.yaml").write_text(f"name: vehicles\nsource: {source}\n")
    line = "  vehicles: ledger in Kafka: not looked at: AIRFLOW_CONN_KAFKA_DEFAULT is not set here"
    assert line in contexture("upgrade", "--dry-run").out.splitlines()


def test_the_doctor_names_files_of_an_earlier_format(contexture, storage):
    def examined(name: str):
        points = installation_points(try_connections=False, timeout_seconds=1.0)
        return next(point for point in points if point.name == name).look()

    found = examined("formats")
    assert (found.verdict, found.detail) == ("doubtful", "files of an earlier format: vehicles")
    assert found.remedy == "run: contexture upgrade --dry-run"
    contexture("upgrade")
    assert examined("formats").detail == "the files of 1 publications are of this Contexture's formats"
    former_tables(url(storage), 3)
    assert examined("operational tables").verdict == "good"
