"""What Spark's driver and executors cost, by entities and by executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from contexture.java.runtime import find_java
from tools.bench.engines.rehearsing import Rehearsal
from tools.bench.engines.submitting import DRIVER, EXECUTORS, SOURCE, Staged, Submits
from tools.bench.measures import Measure, alternate, shown
from tools.bench.settings import Setting
from tools.bench.source_process import source_broker
from tools.cluster.spark import SparkFolders, SparkStandalone

BENCH = "engines"
EXECUTORS_AT_MOST = 2


def standalone(folder: Path, variables: Mapping[str, str]) -> SparkStandalone:
    """A master and two workers of one core; executors find these variables in their environment."""
    folders = SparkFolders(folder / "services", folder / "work", folder / "scratch", folder / "conf")
    return SparkStandalone(folders, find_java(), variables)


def spark(setting: Setting) -> list[Measure]:
    """Stages of few and of many entities, with one executor and with two."""
    few, many = setting.sizes.engine_entities
    setting.progress("starting Spark's master and two workers")
    with standalone(setting.folder, {}) as running:
        submits = Submits(running, setting.folder, {})
        fewer = _Stages(setting, submits, few)
        fewer.taken(warm_up=True)
        more = _Stages(setting, submits, many)
        more.taken(warm_up=False)
    return [more.scaling(), *more.processor(fewer), *more.memory(fewer)]


class _Stages:
    """Stages of one number of entities, by how many executors they had."""

    def __init__(self, setting: Setting, submits: Submits, entities: int) -> None:
        self._setting = setting
        self._submits = submits
        self._entities = entities
        self._numbers = count(1)
        self._staged: dict[int, list[Staged]] = {}

    def taken(self, *, warm_up: bool) -> None:
        """Takes all pairs: two executors, one executor."""
        setting = self._setting
        setting.progress(f"{self._entities:,} entities: filling a broker")
        with source_broker(self._entities) as url:
            rehearsal = Rehearsal(self._submits, url, self._entities)
            if warm_up:
                setting.progress(f"warm-up: {self._rate(rehearsal, EXECUTORS_AT_MOST):,.0f} entities/s")
            self._staged = {1: [], EXECUTORS_AT_MOST: []}
            two, one = (partial(self._rate, rehearsal, number) for number in (EXECUTORS_AT_MOST, 1))
            alternate(two, one, setting.sizes.engine_pairs, setting.progress)

    def scaling(self) -> Measure:
        """Entities a second of two executors against one."""
        what = f"Spark: stage of {self._entities:,} entities without its session, 2 executors of one core"
        figures = self._of(lambda staged: self._entities / staged.working_seconds, EXECUTORS_AT_MOST)
        peer = self._of(lambda staged: self._entities / staged.working_seconds, 1)
        return Measure(BENCH, what, "entities/s", figures, peer, "1 executor")

    def processor(self, fewer: _Stages) -> list[Measure]:
        """Processor seconds of a stage with two executors, by who spent them, against those of fewer entities."""
        rows = []
        for part, name in ((EXECUTORS, "all executors"), (DRIVER, "the driver"), (SOURCE, "the test broker, read")):
            what = f"Spark: processor time of {name}, {self._entities:,} entities, 2 executors"
            rows.append(self._against(fewer, what, "s", partial(_spent_by, part)))
        what = f"Spark: processor time of all executors, {self._entities:,} entities, 2 executors"
        ours, one = (self._of(lambda staged: staged.processor[EXECUTORS], number) for number in (EXECUTORS_AT_MOST, 1))
        return [*rows, Measure(BENCH, what, "s", ours, one, "1 executor")]

    def memory(self, fewer: _Stages) -> list[Measure]:
        """The most memory of the driver and of an executor, against those with fewer entities."""
        driver = f"Spark: peak memory of the driver, JVM and Python, {self._entities:,} entities"
        executor = f"Spark: peak memory of an executor, JVM and Python, {self._entities:,} entities"
        return [
            self._against(fewer, driver, "MiB", lambda staged: staged.memory[DRIVER]),
            self._against(fewer, executor, "MiB", lambda staged: staged.memory[EXECUTORS] / EXECUTORS_AT_MOST),
        ]

    def _against(self, fewer: _Stages, what: str, unit: str, figure: Callable[[Staged], float]) -> Measure:
        ours, others = (each._of(figure, EXECUTORS_AT_MOST) for each in (self, fewer))
        return Measure(BENCH, what, unit, ours, others, f"{fewer._entities:,} entities")

    def _of(self, figure: Callable[[Staged], float], executors: int) -> tuple[float, ...]:
        return tuple(figure(staged) for staged in self._staged[executors])

    def _rate(self, rehearsal: Rehearsal, executors: int) -> float:
        home = self._setting.folder / f"home-{self._entities}-{next(self._numbers)}"
        staged = rehearsal.with_executors(executors).stage(str(home))
        self._staged.setdefault(executors, []).append(staged)
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in staged.result.seconds.items())
        spent = ", ".join(f"{name} {shown(seconds)}" for name, seconds in staged.processor.items())
        self._setting.progress(f"{executors} executors: {staged.seconds:.1f} s ({steps}); processor seconds: {spent}")
        return self._entities / staged.working_seconds


def _spent_by(part: str, staged: Staged) -> float:
    return staged.processor.get(part, 0.0)
