"""The picture of the last runs: one bar for each, as high as it took long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from contexture.monitoring.rows import RunRow

BARS = 20
HEIGHT = 24
_LOWEST = 3.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One run in the picture.

    Attributes:
        x: its place, from 0.
        height: of `HEIGHT`.
        state: of the run.
        label: what a person reads when pointing at it.
    """

    x: int
    height: float
    state: str
    label: str


def bars(runs: Sequence[RunRow], now: datetime) -> tuple[Bar, ...]:
    """The bars of runs that are given latest first; the latest is at the right.

    Heights grow with the logarithm of the time, so that a long run does not hide the others.
    """
    shown = list(reversed(runs[:BARS]))
    seconds = [duration_seconds(run, now) for run in shown]
    longest = max(map(math.log1p, seconds), default=0.0) or 1.0
    return tuple(
        Bar(
            x=BARS - len(shown) + place,
            height=round(_LOWEST + (HEIGHT - _LOWEST) * math.log1p(took) / longest, 1),
            state=run.state,
            label=f"{run.run_id}: {run.state}, {took:.0f} s",
        )
        for place, (run, took) in enumerate(zip(shown, seconds, strict=True))
    )


def duration_seconds(run: RunRow, now: datetime) -> float:
    """How long a run took, or has taken until now."""
    return max(0.0, ((run.ended_at or now) - run.started_at).total_seconds())
