"""Each point of `contexture doctor` that is not as it should be says what is there, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from contexture.errors import ConfigurationError
from contexture.java import runtime
from contexture.operations.actions import doctor
from contexture.operations.actions.doctor import Point, PointResult, run_checks
from contexture.operations.actions.doctor import installation_points as of_installation
from contexture.operations.actions.doctor import machine_points as of_machine
from contexture.storage.home import Home

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: Patch) -> Path:
    (tmp_path / "publications").mkdir()
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    for name in ("CONTEXTURE_DATABASE", "CONTEXTURE_AIRFLOW_URL", "PYSPARK_PYTHON", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def looked(name: str, points: Iterable[Point] | None = None) -> PointResult:
    every = (*of_machine(), *of_installation(try_connections=False, timeout_seconds=1)) if points is None else points
    (found,) = run_checks(point for point in every if point.name == name)
    return found


def too_new(patch: Patch) -> None:
    patch.setattr(doctor, "_NEWEST", (3, 10))


def in_the_way(patch: Patch) -> None:
    patch.setattr(doctor.metadata, "distributions", lambda: [SimpleNamespace(name="pyspark-connect")])


def no_java(patch: Patch) -> None:
    def find() -> None:
        raise ConfigurationError("no Java 17, 21 or 25 was found", next_step="install one")

    patch.setattr(runtime, "find_java", find)


def other_python(patch: Patch) -> None:
    patch.setenv("PYSPARK_PYTHON", "/opt/elsewhere/python")


def no_loopback(patch: Patch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    patch.setattr(doctor.socket, "create_connection", refuse)


def no_time_server(patch: Patch) -> None:
    patch.setattr(doctor, "clock_state", lambda: 5)


def full_disk(patch: Patch) -> None:
    patch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=1 << 20))


def slow_clock(patch: Patch) -> None:
    late = datetime.now(UTC) - timedelta(minutes=5)
    patch.setattr(Home, "written_at", lambda storage, folder: {"try": late})


def no_publication(patch: Patch) -> None:
    """The folder is empty."""


def no_driver(patch: Patch) -> None:
    patch.setenv("CONTEXTURE_DATABASE", "nosuchdriver://contexture:hunter2@127.0.0.1:1/none")


@pytest.mark.parametrize(
    ("name", "happens", "verdict", "detail", "remedy"),
    [
        ("Python", too_new, "error", "3.1", "install with Python 3.11, 3.12 or 3.13"),
        (
            "packages",
            in_the_way,
            "error",
            "pyspark-connect is installed and is not compatible",
            "install again from uv.lock",
        ),
        ("Java", no_java, "error", "no Java 17, 21 or 25 was found", "install one"),
        ("Python of Spark", other_python, "warning", "/opt/elsewhere/python", "leave it out"),
        (
            "ports",
            no_loopback,
            "error",
            "cannot reach itself on 127.0.0.1: Operation",
            "allow processes to bind and reach",
        ),
        ("clock", no_time_server, "warning", "clock is not synchronised", "with a time server"),
        ("storage", full_disk, "warning", "0.0 GiB free", "shorten retention.archive_days"),
        ("storage", slow_clock, "warning", "its clock is 300 s behind", "synchronise both with a time server"),
        ("publications", no_publication, "warning", "there is none in", "write one, or set CONTEXTURE_PUBLICATIONS"),
        ("operational tables", no_driver, "error", "nosuchdriver", "install one and name it in the URL"),
    ],
)
def test_what_is_wrong_is_reported_with_its_remedy(
    monkeypatch: Patch, name: str, happens: Callable[[Patch], None], verdict: str, detail: str, remedy: str
) -> None:
    happens(monkeypatch)
    found = looked(name)
    assert found.verdict == verdict
    assert detail in found.detail
    assert remedy in found.remedy
    assert "hunter2" not in found.detail


def test_tables_that_can_be_nowhere_are_reported(monkeypatch: Patch) -> None:
    monkeypatch.setenv("CONTEXTURE_HOME", "mock:///contexture")
    found = looked("operational tables")
    assert (found.verdict, "CONTEXTURE_DATABASE is not set" in found.detail) == ("warning", True)
    assert "set CONTEXTURE_DATABASE to the URL of a PostgreSQL" in found.remedy


def test_files_of_an_earlier_format_are_reported_with_what_to_do(monkeypatch: Patch, tmp_path: Path) -> None:
    Home(str(tmp_path)).write("vehicles/state/CURRENT", b'{"format": 2}')
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    found = looked("formats")
    assert (found.verdict, "vehicles/state/CURRENT is of format 2" in found.detail) == ("error", True)
    assert "give this one an empty home" in found.remedy


@pytest.mark.parametrize(
    ("state", "verdict", "detail"),
    [(0, "ok", "it is synchronised with a time server"), (None, "skipped", "this system does not report")],
)
def test_a_clock_that_is_right_or_unknown_stops_nothing(
    monkeypatch: Patch, state: int | None, verdict: str, detail: str
) -> None:
    monkeypatch.setattr(doctor, "clock_state", lambda: state)
    found = looked("clock")
    assert found.verdict == verdict
    assert detail in found.detail


def test_the_clock_of_this_machine_can_be_asked_for() -> None:
    assert doctor.clock_state() in {None, *range(6)}


def test_a_storage_without_times_is_no_storage_with_a_wrong_clock(monkeypatch: Patch, home: Path) -> None:
    monkeypatch.setattr(Home, "written_at", lambda storage, folder: {})
    assert looked("storage").verdict == "ok"
    assert list(home.iterdir()) == []
