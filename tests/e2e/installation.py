"""An installation that is stopped and started again: the same Airflow, the same Kafka, the same files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx

from builders.terminal import Terminal
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_sandbox.airflow import Login
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.demo.comparison import concluded
from contexture_sandbox.stack import Stack, StackOptions

PATIENCE_SECONDS = 600.0
"""For what takes half a minute on a machine that does nothing else."""
ANSWER_SECONDS = 120.0
"""For one answer of Airflow's, which may come late on a machine that does much else."""

Found = TypeVar("Found")


@contextmanager
def installation(
    publications: Path,
    home: Path,
    *,
    entities: int,
    others: tuple[Login, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[Installation]:
    """A started installation, its Airflow with further variables; everything of it is ended with the block."""
    with _Configured(StackOptions(publications, home, entities=entities, others=others), variables or {}) as stack:
        yield Installation(stack)


class _Configured(Stack):
    """A stack whose Airflow has settings of its own."""

    def __init__(self, options: StackOptions, variables: Mapping[str, str]) -> None:
        super().__init__(options, progress=print)
        self._variables = dict(variables)

    def _engine_variables(self) -> dict[str, str]:
        return self._variables


@contextmanager
def installation_below(folder: Path, *, entities: int, **files: str) -> Iterator[Installation]:
    """The same with its publications and its home below a folder; it starts with these publication files, by name."""
    write(folder / "publications", **files)
    with installation(folder / "publications", folder / "home", entities=entities) as started:
        yield started


def write(publications: Path, **files: str) -> None:
    """Writes publication files, by name."""
    publications.mkdir(exist_ok=True)
    for name, text in files.items():
        (publications / f"{name}.yaml").write_text(text)


@dataclass
class Installation:
    """Contexture with everything behind it, in the hands of its operator."""

    stack: Stack

    @property
    def publications(self) -> Path:
        """The folder of publication files."""
        return self.stack.publications

    def stop(self) -> None:
        """Ends Airflow and Kafka; files and databases stay."""
        self.stack.airflow.stop()
        self.stack.kafka.stop()

    def start(self) -> None:
        """Starts them again on what they left."""
        self.stack.kafka.start()
        self.stack.airflow.start()

    def runs(self, dag_id: str, prefix: str = "") -> list[DagRun]:
        """The runs of a DAG whose id begins like that, oldest first."""
        return [run for run in self.stack.client.runs(dag_id) if run.run_id.startswith(prefix)]

    def finished(self, dag_id: str, *, number: int, prefix: str = "", seconds: float = PATIENCE_SECONDS) -> DagRun:
        """The `number`th of these runs, counted from 1, when it has come to its end."""
        run = until(lambda: _at(self.runs(dag_id, prefix), number), f"run {number} of {dag_id}", seconds)
        return self.stack.client.await_run(run.dag_id, run.run_id, seconds=seconds)

    def last_log(self, run: DagRun, task: str) -> str:
        """The log of the last try of a task: a backfill that takes a run over tries all of it again."""
        path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/{task}"
        return self.log(run, task, try_number=self.ask("GET", path).json()["try_number"])

    def log(self, run: DagRun, task: str, *, try_number: int = 1) -> str:
        """The log of one try of a task."""
        return self.stack.client.log(run.dag_id, run.run_id, task, try_number=try_number)

    def published(self, publication: str) -> list[Manifest]:
        """The concluded outboxes in the order they were sent."""
        return [manifest for _, manifest in concluded(self.storage.publication(publication).outboxes)]

    @property
    def storage(self) -> Home:
        """The files below CONTEXTURE_HOME."""
        return Home(str(self.stack.options.home))

    def airflow(self, *words: str) -> str:
        """What a command of Airflow's own command line prints."""
        done = subprocess.run(
            ["airflow", *words],
            env=self.stack.settings.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    def contexture(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Contexture's own command line, as its operator has it on this machine."""
        settings = self.stack.settings
        access = {
            "CONTEXTURE_AIRFLOW_URL": settings.url,
            "CONTEXTURE_AIRFLOW_USER": settings.login.user,
            "CONTEXTURE_AIRFLOW_PASSWORD": settings.login.password,
        }
        return subprocess.run(
            [sys.executable, "-m", "contexture.cli", *words],
            env={**settings.environment(), **access},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Asks Airflow's REST interface as a browser does: with the token of the user's login."""
        headers = {"Authorization": f"Bearer {self.token()}"}
        url = f"{self.stack.settings.url}{path}"
        return httpx.request(method, url, json=body, headers=headers, timeout=ANSWER_SECONDS)

    def token(self) -> str:
        """What Airflow's login gives the user."""
        login, url = self.stack.settings.login, self.stack.settings.url
        who = {"username": login.user, "password": login.password}
        answer = httpx.post(f"{url}/auth/token", json=who, timeout=ANSWER_SECONDS)
        return str(answer.json()["access_token"])

    def terminal(self, folder: Path) -> Terminal:
        """A terminal of its operator, for commands as pages have them."""
        terminal = Terminal(folder, AIRFLOW=self.stack.settings.url, TOKEN=self.token())
        terminal.variables |= self.stack.settings.environment()
        return terminal

    def import_errors(self) -> list[str]:
        """What Airflow shows as import errors."""
        return [error["stack_trace"] for error in self.ask("GET", "/api/v2/importErrors").json()["import_errors"]]

    def asset_events(self, asset: str) -> list[dict[str, Any]]:
        """The events of an asset, oldest first."""
        assets = self.ask("GET", f"/api/v2/assets?name_pattern={asset}").json()["assets"]
        (identity,) = [found["id"] for found in assets if found["name"] == asset]
        events = self.ask("GET", f"/api/v2/assets/events?asset_id={identity}&order_by=timestamp").json()
        return list(events["asset_events"])


def until(look: Callable[[], Found | None], what: str, seconds: float) -> Found:
    """What `look` finds in the end."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"no {what} within {seconds:.0f} s"
        time.sleep(0.7)
    return found


def cron_of_minutes(first: datetime, count: int) -> str:
    """A schedule that fires in `count` minutes of each hour, from that of `first` on."""
    return f"{','.join(str((first.minute + after) % 60) for after in range(count))} * * * *"


def _at(runs: list[DagRun], number: int) -> DagRun | None:
    return runs[number - 1] if len(runs) >= number else None
