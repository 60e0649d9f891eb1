"""Celery workers of one Airflow, each as it would run on a machine of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from contexture.errors import ConfigurationError
from contexture_sandbox.processes import ChildProcess, ProcessOptions
from tools.cluster.servers import await_ready

CONCURRENCY = 2
START_SECONDS = 240.0
_GRACE_SECONDS = 15.0
_READY = re.compile(r"celery@\S+ ready|\S+@\S+ ready\.")
_DONE = re.compile(r"Task \S*execute_workload\[[0-9a-f-]+\] succeeded")


class CeleryWorkers:
    """The workers by name; a context manager that ends them all.

    Args:
        logs: the folder of their logs.
        folder: where they note their process ids.
    """

    def __init__(self, logs: Path, folder: Path) -> None:
        self._logs = logs
        self._folder = folder
        self.running: dict[str, ChildProcess] = {}

    def start(self, name: str, environment: Mapping[str, str]) -> None:
        """Starts a worker; `await_ready` waits for it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        command = ["airflow", "celery", "worker", "--celery-hostname", f"{name}@%h", "--concurrency", str(CONCURRENCY)]
        # Logs lie on the same disk, and a log server would listen on all addresses.
        quiet = [
            "--skip-serve-logs",
            "--without-mingle",
            "--without-gossip",
            "--pid",
            str(self._folder / f"{name}.pid"),
        ]
        options = ProcessOptions(log=self.log(name), environment=environment, grace_seconds=_GRACE_SECONDS)
        self.running[name] = ChildProcess([*command, *quiet], options)

    def await_ready(self, name: str) -> None:
        """Waits until a worker takes tasks; raises as `start_server`."""
        process = self.running[name]
        await_ready(f"the Celery worker {name}", process, lambda: bool(_READY.search(self._text(name))), START_SECONDS)

    def kill(self, name: str) -> None:
        """Kills a worker with all that it runs, as when its machine goes."""
        self.running.pop(name).kill()

    def done(self) -> dict[str, int]:
        """How many tasks each worker has done by its own log, dead ones too."""
        return {
            log.stem: len(_DONE.findall(log.read_text(errors="replace"))) for log in self._logs.glob("worker-*.log")
        }

    def failed(self) -> None:
        """Does nothing while all run.

        Raises:
            ConfigurationError: one has ended by itself.
        """
        for name, process in self.running.items():
            if not process.running:
                raise ConfigurationError(
                    f"the Celery worker {name} ended:\n{process.log_tail()}", next_step="correct what its log says"
                )

    def log(self, name: str) -> Path:
        """The log of a worker."""
        return self._logs / f"{name}.log"

    def __enter__(self) -> CeleryWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running.values():
            process.terminate()

    def _text(self, name: str) -> str:
        log = self.log(name)
        return log.read_text(errors="replace") if log.exists() else ""
