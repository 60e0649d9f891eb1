"""Spark standalone out of the pip package: a master and workers, as each would run on a machine of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from contexture.java.runtime import Java
from contexture_airflow.spark_class_data import JAVA_OPTIONS
from contexture_sandbox.ports import LOOPBACK, free_ports
from contexture_sandbox.processes import ChildProcess, ProcessOptions
from tools.cluster.servers import await_ready, start_server

WORKERS = 2
CORES = 1
MEMORY = "1g"
EXECUTOR_MEMORY = "512m"

# What `spark-submit` on an Airflow worker takes from SPARK_CONF_DIR.
DEFAULTS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.executor.memory": EXECUTOR_MEMORY,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
}


@dataclass(frozen=True, slots=True)
class SparkFolders:
    """Where Spark keeps its things: logs, the workers' applications, scratch files, and `spark-defaults.conf`."""

    logs: Path
    work: Path
    scratch: Path
    configuration: Path


class SparkStandalone:
    """A master with `WORKERS` workers on 127.0.0.1; a context manager.

    Args:
        folders: where its files go.
        java: what runs it.
        variables: what executors find in their environment: how they reach the home.
    """

    def __init__(self, folders: SparkFolders, java: Java, variables: Mapping[str, str]) -> None:
        self.folders = folders
        self.port, self._page, *self._others = free_ports(2 + 2 * WORKERS)
        self._environment = {**_environment(java, folders), **variables}
        self._master: ChildProcess | None = None
        self.workers: list[ChildProcess] = []

    @property
    def connection(self) -> dict[str, object]:
        """The Airflow connection that leads to it."""
        return {"conn_type": "spark", "host": f"spark://{LOOPBACK}", "port": self.port}

    def master_status(self) -> dict[str, Any]:
        """Returns workers and applications, as the master's page lists them."""
        answer = httpx.get(f"http://{LOOPBACK}:{self._page}/json/", timeout=30).raise_for_status()
        status: dict[str, Any] = answer.json()
        return status

    def started_executors(self) -> dict[str, int]:
        """For each application the executors that its workers have started."""
        found: dict[str, int] = {}
        for folder in self.folders.work.glob("worker-*/app-*/*"):
            found[folder.parent.name] = found.get(folder.parent.name, 0) + 1
        return found

    def __enter__(self) -> SparkStandalone:
        for folder in (self.folders.work, self.folders.scratch, self.folders.configuration):
            folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name} {value}\n" for name, value in DEFAULTS.items())
        (self.folders.configuration / "spark-defaults.conf").write_text(lines)
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _start(self) -> None:
        words = ("--host", LOOPBACK, "--port", str(self.port), "--webui-port", str(self._page))
        self._master = start_server(
            "Spark's master", _command("master.Master", *words), self._options("spark-master"), port=self.port
        )
        places = [iter(self._others)] * 2
        for number, (port, page) in enumerate(zip(*places, strict=True), start=1):
            self.workers.append(self._worker(number, port, page))
        await_ready("Spark's workers", self._master, self._all_alive)

    def _worker(self, number: int, port: int, page: int) -> ChildProcess:
        words = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page), "--cores", str(CORES))
        work = ("--memory", MEMORY, "--work-dir", str(self.folders.work / f"worker-{number}"))
        command = _command("worker.Worker", f"spark://{LOOPBACK}:{self.port}", *words, *work)
        return ChildProcess(command, self._options(f"spark-worker-{number}"))

    def _all_alive(self) -> bool:
        try:
            workers = self.master_status()["workers"]
        except (httpx.HTTPError, JSONDecodeError):
            # The master's page takes requests before it knows what to answer: an error, or a page without workers.
            return False
        return [worker["state"] for worker in workers].count("ALIVE") == WORKERS

    def _options(self, name: str) -> ProcessOptions:
        return ProcessOptions(log=self.folders.logs / f"{name}.log", environment=self._environment)

    def _stop(self) -> None:
        for process in (*self.workers, self._master):
            if process is not None:
                process.kill()


def _command(service: str, *words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("spark-class")), f"org.apache.spark.deploy.{service}", *words]


def _environment(java: Java, folders: SparkFolders) -> dict[str, str]:
    # Executors get this environment too: nothing of the project may be on their path, for it comes with each submit.
    dropped = ("SPARK_", "PYTHON", "AIRFLOW", "CONTEXTURE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {
        **inherited,
        **java.environment(),
        # Spark's scripts look for the package with the first Python that they find.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folders.scratch),
        "TMPDIR": str(folders.scratch),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{JAVA_OPTIONS} -Djava.net.preferIPv4Stack=true",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }
