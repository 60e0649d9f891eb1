"""What the steps of a run take, by how many things go through it; for `source` and `registry`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from tools.bench.measures import Measure
from tools.bench.settings import Setting

STEPS = ("pull", "prepare", "judge", "publish", "conclude")
STAGE = "stage (Spark, its workers, its driver)"
MEBIBYTE = 1 << 20


@dataclass(slots=True)
class Taken:
    """What one size took: seconds of each step, and bytes at most of Spark with its workers, and of the sender."""

    seconds: dict[str, float] = field(default_factory=dict)
    stage_bytes: int = 0
    sender_bytes: int = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts the block's seconds under `name`."""
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


@dataclass(frozen=True, slots=True)
class StepReport:
    """The rows about several sizes.

    Attributes:
        bench: its name.
        noun: what there are many of.
    """

    bench: str
    noun: str

    def taken(self, setting: Setting, sizes: Sequence[int], take: Callable[[Setting, int], Taken]) -> dict[int, Taken]:
        """What each size takes; the smallest one is taken once before, for what is done first in a process.

        One size alone is a look whether all works: it is taken once, and says nothing about speed.
        """
        if len(sizes) > 1:
            setting.progress("warm-up, not counted")
            take(setting, min(sizes))
        taken: dict[int, Taken] = {}
        for size in sizes:
            taken[size] = take(setting, size)
            shown = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in taken[size].seconds.items())
            setting.progress(f"{size:,} {self.noun}: {shown}")
        return taken

    def measures(self, taken: dict[int, Taken]) -> list[Measure]:
        """A row for each step, and two about memory."""
        return [
            *(self._step(name, taken) for name in STEPS),
            self._memory(STAGE, {size: each.stage_bytes for size, each in taken.items()}),
            self._memory("the sender", {size: each.sender_bytes for size, each in taken.items()}),
        ]

    def _step(self, name: str, taken: dict[int, Taken]) -> Measure:
        sizes = sorted(taken)
        many = sizes[-1]
        if len(sizes) == 1:
            return Measure(self.bench, f"{name} of {many:,} {self.noun}", "s", (taken[many].seconds[name],))
        costs = [(_beyond(name, taken, few, more),) for few, more in pairwise(sizes)]
        what = f"{name} of {many:,} {self.noun} ({taken[many].seconds[name]:,.0f} s), each beyond {sizes[-2]:,}"
        return Measure(self.bench, what, "us", costs[-1], costs[-2], f"each between {sizes[-3]:,} and {sizes[-2]:,}")

    def _memory(self, what: str, bytes_by_size: dict[int, int]) -> Measure:
        *fewer, many = sorted(bytes_by_size)
        peer = tuple(bytes_by_size[few] / MEBIBYTE for few in fewer[-1:])
        against = "".join(f"with {few:,}" for few in fewer[-1:])
        title = f"peak memory of {what}, {many:,} {self.noun}"
        return Measure(self.bench, title, "MiB", (bytes_by_size[many] / MEBIBYTE,), peer, against)


def _beyond(name: str, taken: dict[int, Taken], few: int, more: int) -> float:
    """Microseconds of one: what more of them cost beyond what few cost, so that fixed costs fall out."""
    return (taken[more].seconds[name] - taken[few].seconds[name]) / (more - few) * 1_000_000
