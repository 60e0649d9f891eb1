"""An Airflow of one's own, as docs/how-to/install.md has it: packages by pip, files, pools, `airflow standalone`.

What is typed is what the page says; ports, addresses and folders are others. The packages come from the registry that
pip is configured for, so this needs a network, two gigabytes and some minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from builders.pages import PROJECT, block
from builders.terminal import PATIENCE_SECONDS, Terminal
from contexture.java.runtime import find_java
from contexture.kafka import ClientSettings, read_committed
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.ports import free_port
from e2e.installation import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

PAGE, ADD = "how-to/install.md", "how-to/add-a-publication.md"
LEFT_BEHIND = (".venv", ".git", "var", "dist", "__pycache__", ".*_cache", ".hypothesis")
STATIONS = [
    {
        "id": f"station{number}",
        "type": "BikeHireDockingStation",
        "availableBikeNumber": {"type": "Number", "value": 10 + number},
    }
    for number in (1, 2)
]
CITY = {"Fiware-Service": "city", "Fiware-ServicePath": "/transport"}


class OwnAirflow:
    """The terminal of a person who installs Contexture, and the Airflow that this person starts in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.log = free_port(), folder / "standalone.log"
        self.url = f"http://127.0.0.1:{self.port}"
        home, ports = folder / "airflow", {"WORKER": free_port(), "TRIGGER": free_port()}
        # What the page leaves at its default, and what another Airflow on this machine may have taken.
        own = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports["WORKER"]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports["TRIGGER"]),
            "TMPDIR": str(folder),
            **find_java().environment(),
        }
        self.terminal = Terminal(folder / "checkout", **own)
        for name in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"):
            self.terminal.variables.pop(name, None)
        self.passwords = home / "simple_auth_manager_passwords.json.generated"
        self.process: subprocess.Popen[bytes] | None = None

    def environment_of_its_own(self) -> None:
        """Makes an empty environment, and a copy of the project as it is after a fresh checkout."""
        ignored = shutil.ignore_patterns(*LEFT_BEHIND)
        shutil.copytree(PROJECT, self.terminal.folder, ignore=ignored, symlinks=True)
        subprocess.run([sys.executable, "-m", "venv", str(self.folder / "env")], check=True)
        path = f"{self.folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.terminal.variables["PATH"] = path

    def start(self, command: str) -> None:
        """Starts Airflow in the background, and waits for its page."""
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.terminal.folder,
                env=self.terminal.variables,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self.answers, "answer of Airflow's page", PATIENCE_SECONDS)

    def answers(self) -> bool | None:
        """Whether all of Airflow is there; it may still be starting."""
        assert self.process is None or self.process.poll() is None, self.last_output()
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=60).json()
        except (httpx.HTTPError, ValueError):
            return None
        parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
        return all(health[part]["status"] == "healthy" for part in parts) or None

    def last_output(self) -> str:
        """Returns the end of what Airflow has printed."""
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""

    def ask(self, path: str) -> httpx.Response:
        """Asks as the user whom `airflow standalone` makes."""
        who = {"username": "admin", "password": json.loads(self.passwords.read_text())["admin"]}
        token = httpx.post(f"{self.url}/auth/token", json=who, timeout=120).json()["access_token"]
        return httpx.get(f"{self.url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=120)

    def knows(self, dag: str) -> bool | None:
        """Whether it has read a DAG."""
        return self.ask(f"/api/v2/dags/{dag}").is_success or None

    def ended(self, dag: str) -> set[str] | None:
        """The states of the runs of a DAG, once there are some and all have ended."""
        runs = self.ask(f"/api/v2/dags/{dag}/dagRuns").json()["dag_runs"]
        states = {run["state"] for run in runs}
        return states if states and states <= {"success", "failed"} else None

    def stop(self) -> None:
        """As Ctrl-C in its terminal."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(2)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, 9)
                self.process.wait()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnAirflow]:
    """An Airflow that is ended with the test; what it installed goes at once."""
    made = OwnAirflow(tmp_path)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(tmp_path / "env", ignore_errors=True)


def test_contexture_runs_in_an_airflow_of_ones_own(own: OwnAirflow) -> None:
    own.environment_of_its_own()
    with EmbeddedKafka() as kafka, TestBroker() as broker:
        install(own, broker, kafka)
        start(own)
        publish(own, broker, kafka)
        own.stop()


def install(own: OwnAirflow, broker: TestBroker, kafka: EmbeddedKafka) -> None:
    """Steps 1 to 5 of the page."""
    terminal = own.terminal
    terminal.run(block(PAGE, "pip install -r requirements.txt"))
    terminal.run(block(PAGE, "cp dags/*.py"))
    terminal.set(block(PAGE, "export CONTEXTURE_HOME").replace("/srv/contexture", str(own.folder / "srv")))
    named = block(PAGE, "AIRFLOW_CONN_KAFKA_DEFAULT").replace("broker-1:9092,broker-2:9092", kafka.bootstrap_servers)
    terminal.set(named)
    # Those of the publication.
    port = str(httpx.URL(broker.url).port)
    named = block(ADD, "AIRFLOW_CONN_CITY_BROKER").replace("127.0.0.1:9092", kafka.bootstrap_servers)
    terminal.set(named.replace("1026", port))
    terminal.run(block(PAGE, "airflow db migrate"))
    # Another checkout is not what was installed.
    where = terminal.run("cd / && python -c 'import contexture; print(contexture.__file__)'").stdout
    assert where.startswith(str(own.folder / "env"))


def start(own: OwnAirflow) -> None:
    """Step 6: Airflow, its DAGs, its page, and what `contexture doctor` says of it."""
    own.start(block(PAGE, "airflow standalone").strip())
    until(lambda: own.knows("resynchronise"), "DAG resynchronise", PATIENCE_SECONDS)
    own.terminal.run(block(PAGE, "contexture doctor"))
    # Its first run starts what has never run; a person who reads on takes longer than that.
    assert until(lambda: own.ended("resynchronise"), "end of the start", PATIENCE_SECONDS) == {"success"}, (
        own.last_output()
    )
    assert own.ask("/api/v2/importErrors").json()["import_errors"] == []
    pools = {pool["name"] for pool in own.ask("/api/v2/pools").json()["pools"]}
    assert pools >= {"contexture_broker", "contexture_source", "contexture_spark"}
    assert own.ask("/contexture/api/publications").json()["lines"] == []


def publish(own: OwnAirflow, broker: TestBroker, kafka: EmbeddedKafka) -> None:
    """A publication as the page that the last sentence names has it, in one run."""
    for station in STATIONS:
        httpx.post(f"{broker.url}/v2/entities", json=station, headers=CITY).raise_for_status()
    folder = Path(own.terminal.variables["CONTEXTURE_PUBLICATIONS"])
    (folder / "bikes.yaml").write_text(block(ADD, "name: bikes"))
    until(lambda: own.knows("publish_bikes"), "DAG publish_bikes", PATIENCE_SECONDS)
    own.terminal.run("airflow dags unpause publish_bikes")
    own.terminal.run(block(ADD, "airflow dags trigger publish_bikes\n"))
    assert until(lambda: own.ended("publish_bikes"), "end of the run", PATIENCE_SECONDS) == {"success"}, (
        own.last_output()
    )
    records = read_committed(ClientSettings.from_extra(kafka.client_settings()), ["bikes"])
    received = sorted(json.loads(record.value or b"")["id"] for record in records)
    assert received == ["station1", "station2"]
    assert "bikes" in own.terminal.run(block(ADD, "contexture status bikes")).stdout
