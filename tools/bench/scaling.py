"""`scale`: what one more event costs prepare, among few and among many.

A preparation costs a fixed part, however few events there are, and a part by event. What one event costs among many is
what the second half of them adds to the first, so that the fixed part falls out without having to be known: a
preparation of a hundred entities is no measure of it, for some of its waiting is hidden behind work when there is more
of that. All sizes are taken in the same round, short ones several times with their median, so that a machine that
others use does not shift one against the other.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from tools.bench.measures import Measure, Target
from tools.bench.preparing import PreparedCase
from tools.bench.settings import Setting
from tools.bench.spark_session import spark_session

TARGET = Target(1.2, at_least=False)
HELD_TO_TARGET = 10_000
"""Below, what an event adds is lost in how much the fixed cost varies."""
_REPEATED_PREPARATIONS = 100_000
"""Preparations are repeated until they have had about so many events together, but no more than this often:"""
_MOST_REPEATS = 11


def scale(setting: Setting) -> list[Measure]:
    """Full mode with a state of equal size, each number of entities and half of it in turn."""
    sizes = setting.sizes.scaled_entities
    with spark_session(setting.folder) as spark:
        cases = []
        for entities in sorted({*sizes, *(size // 2 for size in sizes)}):
            setting.progress(f"{entities:,} entities: writing a landing, preparing and concluding it once")
            cases.append(PreparedCase(spark, setting.folder / str(entities), entities))
        costs: dict[int, list[float]] = {size: [] for size in sizes}
        for number in range(setting.sizes.pairs):
            seconds = {case.entities: _seconds(case) for case in (cases if number % 2 == 0 else cases[::-1])}
            for size in sizes:
                costs[size].append(_microseconds(seconds, size))
            shown = ", ".join(f"{size:,} {figures[-1]:.1f} us" for size, figures in costs.items())
            setting.progress(f"round {number + 1}: an event among {shown}")
    return [_measure(costs, few, many) for few, many in pairwise(sizes)]


def _seconds(case: PreparedCase) -> float:
    repeats = min(_MOST_REPEATS, max(1, round(_REPEATED_PREPARATIONS / case.entities)))
    return median(case.prepare() for _ in range(repeats))


def _microseconds(seconds: dict[int, float], size: int) -> float:
    half = size // 2
    return (seconds[size] - seconds[half]) / (size - half) * 1_000_000


def _measure(costs: dict[int, list[float]], few: int, many: int) -> Measure:
    target = TARGET if few >= HELD_TO_TARGET else None
    ours, peer = tuple(costs[many]), tuple(costs[few])
    what = f"an event among {many:,}, beyond the fixed cost"
    return Measure("scale", what, "us", ours, peer, f"an event among {few:,}", target)
