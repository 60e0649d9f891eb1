"""Airflow's four services as processes of ours.

`airflow standalone` is not used: its log servers listen on all addresses and its schedule begins before its API
answers. Started one by one, without log servers and in this order, nothing listens but the API, and only on 127.0.0.1.
The UI shows logs all the same: it finds them on the same disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType

import httpx

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.airflow.environment import AirflowSettings
from contexture_sandbox.processes import ChildProcess, ProcessOptions

Progress = Callable[[str], None]

START_SECONDS = 240
STOP_SECONDS = 15
SERVICES = (
    ("scheduler", ("scheduler", "--skip-serve-logs")),
    ("dag-processor", ("dag-processor",)),
    ("triggerer", ("triggerer", "--skip-serve-logs")),
)
HEALTH_OF = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}


class AirflowProcesses:
    """A running Airflow; a context manager that starts and ends it.

    Attributes:
        before_schedule: called once the API answers, before anything is scheduled.
    """

    def __init__(self, settings: AirflowSettings, progress: Progress = lambda line: None) -> None:
        self.settings = settings
        self._progress = progress
        self.before_schedule: Callable[[], None] = lambda: None
        self._environment = settings.environment()
        self._running: dict[str, ChildProcess] = {}

    def start(self) -> None:
        """Starts everything and waits until all of it is healthy.

        Raises:
            ConfigurationError: a service ended; the last lines of its log are in the message.
            RetriableError: it did not become healthy in time.
        """
        self.settings.write_files()
        self._progress("making Airflow's database")
        self._migrate()
        self._progress("starting Airflow's API and UI")
        self._launch("api-server", ("api-server", "--host", "127.0.0.1", "--port", str(self.settings.port)))
        self._await("the API", self._api_answers)
        self.before_schedule()
        self._progress("starting Airflow's scheduler, DAG processor and triggerer")
        for name, command in SERVICES:
            self._launch(name, command)
        self._await("the scheduler", self._all_healthy)

    def stop(self) -> None:
        """Ends everything: those who start work first, the API last, because tasks report to it."""
        for name in ("scheduler", "dag-processor", "triggerer", "api-server"):
            process = self._running.pop(name, None)
            if process is not None:
                process.terminate(interrupt=True)

    def kill(self, service: str) -> None:
        """Kills a service (SIGKILL) and all tasks that it has started, as the end of its container does.

        Args:
            service: "api-server" or a name of `SERVICES`.
        """
        self._running.pop(service).kill()

    def start_again(self, service: str, **further: str) -> None:
        """Starts a service of `SERVICES` that was killed, with further variables in its environment."""
        self._environment |= further
        self._launch(service, dict(SERVICES)[service])

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of the services, with their secrets: for workers that belong to them."""
        return self._environment

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process ids of the services."""
        return tuple(process.pid for process in self._running.values())

    def failed(self) -> str | None:
        """The name of a service that has ended, with the last lines of its log; None while all run."""
        for name, process in self._running.items():
            if not process.running:
                return f"{name} (exit code {process.exit_code}):\n{process.log_tail()}"
        return None

    def __enter__(self) -> AirflowProcesses:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _migrate(self) -> None:
        with ChildProcess(("airflow", "db", "migrate"), self._options("db-migrate")) as process:
            if process.wait(START_SECONDS):
                raise ConfigurationError(
                    f"Airflow could not make its database:\n{process.log_tail()}",
                    next_step=f"read {process.options.log}",
                )

    def _launch(self, name: str, command: tuple[str, ...]) -> None:
        self._running[name] = ChildProcess(("airflow", *command), self._options(name))

    def _options(self, name: str) -> ProcessOptions:
        log = self.settings.folder / "services" / f"{name}.log"
        return ProcessOptions(log=log, environment=self._environment, grace_seconds=STOP_SECONDS)

    def _await(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            failed = self.failed()
            if failed:
                raise ConfigurationError(f"Airflow's {failed}", next_step="read the lines above for the reason")
            if ready():
                return
            time.sleep(0.5)
        raise RetriableError(
            f"{what} of Airflow did not answer within {START_SECONDS} s",
            next_step=f"read {self.settings.folder / 'services'}, and try again when the machine is less busy",
        )

    def _api_answers(self) -> bool:
        # The execution API is built at its first request; tasks should not be the ones who wait for that.
        return self._get("/api/v2/monitor/health") is not None and self._get("/execution/health") is not None

    def _all_healthy(self) -> bool:
        answer = self._get("/api/v2/monitor/health")
        health = answer.json() if answer is not None else {}
        return all((health.get(part) or {}).get("status") == "healthy" for part in HEALTH_OF.values())

    def _get(self, path: str) -> httpx.Response | None:
        try:
            answer = httpx.get(f"{self.settings.url}{path}", timeout=30)
        except httpx.HTTPError:
            return None
        return answer if answer.is_success else None
