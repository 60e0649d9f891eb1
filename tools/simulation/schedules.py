"""Schedules one after the other, each by its seed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

from tools.simulation.clients import simulated
from tools.simulation.plans import plan_of
from tools.simulation.runs import Run
from tools.simulation.verdict import Verdict

_PACKAGES = ("contexture.kafka", "contexture_airflow.steps")
# A collection looks through all of Contexture's modules: with Python's own thresholds it takes a third of the time.
_COLLECTED_EVERY = 200


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a schedule."""

    seed: int
    scenario: str
    weather: str
    verdict: Verdict


def try_schedules(first: int, count: int, scenario: str | None = None, weather: str | None = None) -> Iterator[Found]:
    """Carries out the schedules of consecutive seeds.

    Args:
        first: the first seed.
        count: how many.
        scenario, weather: of this kind alone; None for any.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with simulated(_PACKAGES) as choose:
            for number, seed in enumerate(range(first, first + count)):
                run = Run(plan_of(seed, scenario, weather))
                choose(run.world)
                yield Found(seed, run.plan.scenario, run.plan.sky, run.carry_out())
                if number % _COLLECTED_EVERY == 0:
                    gc.collect()
    finally:
        if was_enabled:
            gc.enable()


def replay(seed: int, scenario: str | None = None, weather: str | None = None) -> tuple[Verdict, list[str]]:
    """One schedule again, with everything that happens in it."""
    run = Run(plan_of(seed, scenario, weather), traced=True)
    with simulated(_PACKAGES) as choose:
        choose(run.world)
        return run.carry_out(), [f"{run.plan}", *run.world.events.trace]
