"""`scale`: what one more event costs prepare, among few and among many.

A preparation costs a fixed part, however few events there are, and a part by event. The fixed part is what a
preparation of a hundred entities takes; what is beyond it, divided by the number of entities, is the cost of one. Both
are taken in the same round, so that a machine that others use does not shift one against the other.
"""

from __future__ import annotations

from itertools import pairwise

from bench.measures import Measure, Target
from bench.preparing import PreparedCase
from bench.settings import Setting
from bench.spark_session import spark_session

TARGET = Target(1.2, at_least=False)
HELD_TO_TARGET = 10_000
"""Below, what is beyond the fixed cost is lost in it."""


def scale(setting: Setting) -> list[Measure]:
    """Full mode with a state of equal size, each number of entities in turn."""
    with spark_session(setting.folder) as spark:
        cases = []
        for entities in setting.sizes.scaled_entities:
            setting.tell(f"{entities:,} entities: writing a landing, preparing and concluding it once")
            cases.append(PreparedCase(spark, setting.folder / str(entities), entities))
        costs: dict[int, list[float]] = {case.entities: [] for case in cases[1:]}
        for number in range(setting.sizes.pairs):
            for entities, cost in _round(cases if number % 2 == 0 else cases[::-1]).items():
                costs[entities].append(cost)
            shown = ", ".join(f"{entities:,} {figures[-1]:.1f} us" for entities, figures in costs.items())
            setting.tell(f"round {number + 1}: an event among {shown}")
    sizes = sorted(costs)
    return [_measure(costs, few, many) for few, many in pairwise(sizes)]


def _round(cases: list[PreparedCase]) -> dict[int, float]:
    """Microseconds of an event beyond the fixed cost, by number of entities."""
    seconds = {case.entities: case.prepare() for case in cases}
    fixed = seconds.pop(min(seconds))
    return {entities: (taken - fixed) / entities * 1_000_000 for entities, taken in sorted(seconds.items())}


def _measure(costs: dict[int, list[float]], few: int, many: int) -> Measure:
    target = TARGET if few >= HELD_TO_TARGET else None
    ours, peer = tuple(costs[many]), tuple(costs[few])
    what = f"an event among {many:,}, beyond the fixed cost"
    return Measure("scale", what, "us", ours, peer, f"an event among {few:,}", target)
