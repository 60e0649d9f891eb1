"""`contexture doctor` names what stops runs, and what to do about it."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import httpx
import pytest

from contexture.errors import ConfigurationError
from contexture.operations.actions import doctor
from contexture.operations.actions.doctor import Point, PointOutcome, run_checks
from contexture.operations.airflow_client import AirflowClient

FILE = "name: vehicles\nsource: {kind: ngsi, connection: city, service: a, service_path: /b}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    publications = tmp_path / "publications"
    publications.mkdir()
    (publications / "vehicles.yaml").write_text(FILE)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(publications))
    for name in ("CONTEXTURE_DATABASE", "CONTEXTURE_AIRFLOW_URL", "PYSPARK_PYTHON", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AIRFLOW_CONN_CITY", "AIRFLOW_CONN_KAFKA_DEFAULT"):
        monkeypatch.delenv(name, raising=False)
    return publications


def points(contexture, *arguments: str) -> dict[str, dict[str, object]]:
    done = contexture("doctor", "--json", *arguments)
    return {point["name"]: point for point in json.loads(done.out)["points"]}


def test_a_whole_installation_is_well(contexture):
    done = contexture("doctor")
    assert done.code == 0, done.out
    assert "packages: ok: Contexture" in done.out
    assert "error" not in done.out


def test_every_connection_that_publications_name_is_a_point(contexture):
    found = points(contexture)
    assert {name for name in found if name.startswith("connection")} == {"connection city", "connection kafka_default"}
    assert found["connection city"]["detail"] == "AIRFLOW_CONN_CITY is not set here"


def test_a_connection_that_leads_nowhere_is_bad_and_named(contexture, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_CITY", '{"conn_type": "http", "host": "127.0.0.1", "port": 9}')
    done = contexture("doctor", "--timeout", "1")
    assert done.code == 1
    assert "connection city: error: http://127.0.0.1:9" in done.out
    assert "next: run: contexture connection test city" in done.out


def test_connections_are_not_tried_when_that_is_said(contexture, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_CITY", '{"conn_type": "http", "host": "127.0.0.1", "port": 9}')
    found = points(contexture, "--without-connections")
    assert found["connection city"]["verdict"] == "skipped"


def test_a_broken_publication_is_bad(contexture, folder):
    (folder / "bikes.yaml").write_text("name: bikes\nsuorce: {}\n")
    found = points(contexture)["publications"]
    assert (found["verdict"], found["detail"]) == ("error", "1 cannot be used: bikes.yaml")
    assert found["remedy"] == "run: contexture check"


@pytest.mark.slow
def test_a_storage_that_can_not_be_written_is_bad(contexture, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "file" / "home"))
    found = points(contexture)["storage"]
    assert found["verdict"] == "error"
    assert found["remedy"]


def test_trying_the_storage_leaves_nothing_behind(contexture, tmp_path):
    assert points(contexture)["storage"]["verdict"] == "ok"
    assert list((tmp_path / "home").iterdir()) == []


def test_few_open_files_and_no_byte_code_are_doubtful(contexture, monkeypatch):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda which: (1024, resource.RLIM_INFINITY))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    found = points(contexture)
    assert found["open files"]["verdict"] == "warning"
    assert found["byte code"]["verdict"] == "warning"


def test_missing_and_unfitting_packages_are_named(monkeypatch):
    needed = ["no-such-package>=1", "pytest<1", "never; python_version < '3'", "extra-only; extra == 'java'"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: needed)
    (found,) = run_checks([point for point in doctor.machine_points() if point.name == "packages"])
    assert found.verdict == "error"
    assert found.detail.startswith("no-such-package is missing; pytest is ")
    assert "never" not in found.detail
    assert "extra-only" not in found.detail


def test_an_error_of_ours_is_a_bad_point_with_its_next_step():
    def look() -> PointOutcome:
        raise ConfigurationError("it is not there", next_step="put it there")

    (found,) = run_checks([Point("thing", look)])
    assert (found.verdict, found.detail, found.remedy) == ("error", "it is not there", "put it there")


@pytest.mark.parametrize(
    ("pools", "paused", "verdict", "words"),
    [
        (["contexture_source"], False, "error", "it has no pools contexture_broker, contexture_spark"),
        (["contexture_broker", "contexture_source", "contexture_spark"], True, "warning", "resynchronise is paused"),
        (["contexture_broker", "contexture_source", "contexture_spark"], False, "ok", "its pools are there"),
    ],
)
def test_airflow_is_asked_for_its_pools_and_the_first_dag(monkeypatch, pools, paused, verdict, words):
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v2/pools":
            return httpx.Response(200, json={"pools": [{"name": name} for name in pools]})
        return httpx.Response(200, json={"is_paused": paused})

    monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_TOKEN", "t")
    monkeypatch.setattr(
        doctor, "AirflowClient", lambda access: AirflowClient(access, transport=httpx.MockTransport(answer))
    )
    points = doctor.installation_points(try_connections=False, timeout_seconds=1)
    (found,) = run_checks([point for point in points if point.name == "Airflow"])
    assert found.verdict == verdict
    assert words in found.detail


def test_a_folder_of_publications_that_may_not_be_read_is_one_bad_point_among_all(contexture, folder, monkeypatch):
    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", denied)
    found = points(contexture)
    assert (found["publications"]["verdict"], found["publications"]["detail"]) == (
        "error",
        f"{folder} cannot be read: Permission denied",
    )
    assert list(found)[-1] == "Airflow"
