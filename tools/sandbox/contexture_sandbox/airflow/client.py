"""Runs, tasks and logs of one Airflow, as the demo and the end-to-end tests follow them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from contexture.errors import RetriableError
from contexture.operations import airflow_client as operations
from contexture.operations.airflow_client import AirflowCredentials
from contexture_sandbox.airflow.environment import AirflowSettings

FINISHED = frozenset({"success", "failed"})


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """One task of a run; `map_index` is -1 where it is not mapped; `process` is the process id where it runs."""

    task_id: str
    map_index: int
    state: str | None
    seconds: float
    process: int | None = None


@dataclass(frozen=True, slots=True)
class DagRun:
    """One run of a DAG."""

    dag_id: str
    run_id: str
    run_type: str
    state: str
    started_at: datetime | None
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether it has come to an end."""
        return self.state in FINISHED


class AirflowClient:
    """Talks to one Airflow as its sandbox user."""

    def __init__(self, settings: AirflowSettings) -> None:
        login = settings.login
        access = AirflowCredentials(url=settings.url, user=login.user, password=login.password)
        self._client = operations.AirflowClient(access, timeout_seconds=60)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def make_pools(self, pools: Iterable[tuple[str, int, str]]) -> None:
        """Makes the pools (name, slots, description) that are not there yet."""
        for name, slots, description in pools:
            body = {"name": name, "slots": slots, "description": description, "include_deferred": False}
            self._client.request("POST", "/api/v2/pools", json=body, allowed=(409,))

    def await_dags(self, dag_ids: Iterable[str], *, seconds: float = 300) -> None:
        """Waits until all these DAGs are known.

        Raises:
            RetriableError: one is still unknown after `seconds`.
        """
        missing = set(dag_ids)
        deadline = time.monotonic() + seconds
        while missing and time.monotonic() < deadline:
            known = self._client.request("GET", "/api/v2/dags", params={"limit": 1000}).json()["dags"]
            missing -= {dag["dag_id"] for dag in known}
            if missing:
                time.sleep(1)
        if missing:
            raise RetriableError(
                f"Airflow does not know {', '.join(sorted(missing))} after {seconds:.0f} s",
                next_step="look at the import errors in the UI and in the log of the dag-processor",
            )

    def trigger(self, dag_id: str, conf: dict[str, object] | None = None) -> DagRun:
        """Starts a run by hand."""
        return self.run(dag_id, self._client.trigger(dag_id, conf or {}))

    def backfill(self, dag_id: str, start: datetime, end: datetime) -> int:
        """Asks Airflow's Backfill for all intervals from `start` to `end`; gives its id."""
        return self._client.backfill(dag_id, start, end, {})

    def runs(self, dag_id: str) -> list[DagRun]:
        """The runs of a DAG, oldest first."""
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        answer = self._client.request("GET", path, params={"limit": 100, "order_by": "id"}, allowed=(404,))
        return [_run(item) for item in answer.json().get("dag_runs", [])]

    def run(self, dag_id: str, run_id: str) -> DagRun:
        """The present state of one run."""
        return _run(self._client.request("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}").json())

    def tasks(self, dag_id: str, run_id: str) -> list[TaskInstance]:
        """The task instances of a run."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        items = self._client.request("GET", path, params={"limit": 1000}).json()["task_instances"]
        return [_task(item) for item in items]

    def log(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, try_number: int = 1) -> str:
        """A task's log as text."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        params = {"map_index": map_index, "full_content": True}
        answer = self._client.request(
            "GET", path, params=params, headers={"Accept": "application/x-ndjson"}, allowed=(404,)
        )
        return answer.text

    def await_run(
        self, dag_id: str, run_id: str, *, seconds: float = 900, watch: Callable[[DagRun], None] = lambda run: None
    ) -> DagRun:
        """Waits for the end of a run; `watch` sees it about once a second.

        Raises:
            RetriableError: it has not ended after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = self.run(dag_id, run_id)
            watch(run)
            if run.finished:
                return run
            time.sleep(0.7)
        raise RetriableError(
            f"run {run_id} of {dag_id} has not ended after {seconds:.0f} s", next_step="look at its tasks in the UI"
        )


def _run(item: dict[str, object]) -> DagRun:
    started, ended = _moment(item.get("start_date")), _moment(item.get("end_date"))
    return DagRun(
        dag_id=str(item["dag_id"]),
        run_id=str(item["dag_run_id"]),
        run_type=str(item["run_type"]),
        state=str(item["state"]),
        started_at=started,
        seconds=(ended - started).total_seconds() if started and ended else 0.0,
    )


def _task(item: dict[str, object]) -> TaskInstance:
    return TaskInstance(
        task_id=str(item["task_id"]),
        map_index=int(str(item.get("map_index", -1))),
        state=str(item["state"]) if item.get("state") else None,
        seconds=float(str(item.get("duration") or 0.0)),
        process=int(str(item["pid"])) if item.get("pid") else None,
    )


def _moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) else None
