"""Schedules one after the other, each by its seed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context

from tools.simulation.clients import simulated
from tools.simulation.plans import plan_of
from tools.simulation.runs import Run, SimulatedTarget, TargetOf
from tools.simulation.verdict import Verdict

_PACKAGES = ("contexture.kafka", "contexture.sending", "contexture_airflow.steps")
# A collection looks through all of Contexture's modules: with Python's own thresholds it takes a third of the time.
_COLLECTED_EVERY = 200
_PART = 100


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a schedule."""

    seed: int
    scenario: str
    weather: str
    verdict: Verdict


def try_schedules(
    first: int,
    count: int,
    scenario: str | None = None,
    weather: str | None = None,
    target_of: TargetOf = SimulatedTarget,
) -> Iterator[Found]:
    """Carries out the schedules of consecutive seeds.

    Args:
        first: the first seed.
        count: how many.
        scenario, weather: of this kind alone; None for any.
        target_of: as of `Run`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with simulated(_PACKAGES) as choose:
            for number, seed in enumerate(range(first, first + count)):
                run = Run(plan_of(seed, scenario, weather), target_of=target_of)
                choose(run.world)
                yield Found(seed, run.plan.scenario, run.plan.sky, run.carry_out())
                if number % _COLLECTED_EVERY == 0:
                    gc.collect()
    finally:
        if was_enabled:
            gc.enable()


def try_side_by_side(
    first: int, count: int, scenario: str | None = None, weather: str | None = None, *, workers: int = 1
) -> Iterator[Found]:
    """Yields the same in several processes; comes in any order."""
    if workers == 1:
        yield from try_schedules(first, count, scenario, weather)
        return
    parts = [
        (start, min(_PART, first + count - start), scenario, weather) for start in range(first, first + count, _PART)
    ]
    with get_context("forkserver").Pool(workers) as pool:
        for some in pool.imap_unordered(_part, parts):
            yield from some


def _part(part: tuple[int, int, str | None, str | None]) -> list[Found]:
    return list(try_schedules(*part))


def replay(seed: int, scenario: str | None = None, weather: str | None = None) -> tuple[Verdict, list[str]]:
    """One schedule again, with everything that happens in it."""
    run = Run(plan_of(seed, scenario, weather), traced=True)
    with simulated(_PACKAGES) as choose:
        choose(run.world)
        return run.carry_out(), [f"{run.plan}", *run.world.events.trace]
