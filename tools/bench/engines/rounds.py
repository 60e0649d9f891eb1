"""Publications beside each other through Airflow's scheduler, and what the parts of the platform spent on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tools.bench.engines.accounting import ProcessorTime
from tools.bench.engines.counted_platform import CountedPlatform
from tools.bench.engines.counted_store import Traffic
from tools.bench.engines.database import Databases
from tools.bench.measures import shown
from tools.bench.settings import Setting

ROUND_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Round:
    """What some runs beside each other took.

    Attributes:
        runs: how many; 0 for a look at the platform at rest.
        seconds: from the first start to the last end.
        processor: processor seconds of each part.
        statements: that PostgreSQL did.
        traffic: of the object store.
    """

    runs: int
    seconds: float
    processor: Mapping[str, float]
    statements: int
    traffic: Traffic

    @property
    def runs_a_minute(self) -> float:
        """The rate."""
        return self.runs / self.seconds * 60

    def processor_of(self, part: str, rest: Round) -> float:
        """Processor seconds that a run adds to what the part spends at rest."""
        return (self.processor[part] - rest.processor[part] / rest.seconds * self.seconds) / self.runs

    def statements_of(self, rest: Round) -> float:
        """Statements that a run adds to those at rest."""
        return (self.statements - rest.statements / rest.seconds * self.seconds) / self.runs


@dataclass(frozen=True, slots=True)
class Rounds:
    """Takes rounds on one platform."""

    platform: CountedPlatform
    databases: Databases
    publications: Sequence[str]
    setting: Setting

    def rest(self) -> Round:
        """A look at the platform while nothing runs."""
        self.setting.progress(f"at rest for {self.setting.sizes.rest_seconds} s")
        return self._counted(0, lambda: time.sleep(self.setting.sizes.rest_seconds))

    def taken(self, mode: str) -> Round:
        """All publications at once, in this mode; raises RuntimeError when a run fails."""
        found = self._counted(len(self.publications), lambda: self._run(mode))
        spent = ", ".join(f"{part} {shown(seconds)}" for part, seconds in found.processor.items())
        self.setting.progress(f"{mode}: {found.runs} runs in {found.seconds:.0f} s; processor seconds: {spent}")
        self.setting.progress(f"{found.statements:,} statements, {found.traffic.requests:,} requests to the store")
        return found

    def _counted(self, runs: int, work: Callable[[], None]) -> Round:
        mark, asked = self.platform.store.mark(), self.databases.statements()
        books, began = ProcessorTime(self.platform.parts), time.monotonic()
        work()
        seconds, spent = time.monotonic() - began, books.seconds()
        return Round(runs, seconds, spent, self.databases.statements() - asked, self.platform.store.since(mark))

    def _run(self, mode: str) -> None:
        client = self.platform.client
        started = [client.trigger(f"publish_{name}", {"mode": mode, "reason": "bench"}) for name in self.publications]
        for run in started:
            done = client.await_run(run.dag_id, run.run_id, seconds=ROUND_SECONDS)
            if done.state != "success":
                states = ", ".join(f"{task.task_id} {task.state}" for task in client.tasks(run.dag_id, run.run_id))
                raise RuntimeError(f"{run.dag_id} ended as {done.state}: {states}")
