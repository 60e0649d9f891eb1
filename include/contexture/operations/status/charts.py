"""The geometry of small charts: a column for each run, which together fill the width, and a scale to read them by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

COLUMNS: Final = 40
"""The most runs in a chart."""

WIDTH: Final = 560
HEIGHT: Final = 90
"""Of the drawing, which the page stretches to the place that a chart has."""

_LOWEST: Final = 1.5
_WIDEST: Final = WIDTH / 8
_SHARE_OF_SLOT: Final = 0.75
_STEPS: Final = (2, 4, 6, 8, 10)
"""Leading digits of a scale's end, each of which has a half."""


@dataclass(frozen=True, slots=True)
class Column:
    """One run in a chart.

    Attributes:
        x, y: its upper left corner.
        height: of `HEIGHT`; something is drawn where the number is 0 too, so that the run shows.
        state: the reason for its colour.
        label: the text that a person reads when pointing at it.
    """

    x: float
    y: float
    width: float
    height: float
    state: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A number over runs.

    Attributes:
        top: the greatest number.
        scale: the numbers beside the chart: its end, the middle and 0.
        columns: oldest first.
        first, last: when the runs at both ends started; empty where no axis shows it.
    """

    title: str
    top: int
    scale: tuple[int, ...]
    columns: tuple[Column, ...]
    first: str = ""
    last: str = ""

    @property
    def summary(self) -> str:
        """The chart in one sentence, for readers who do not see it."""
        count = len(self.columns)
        runs = f"the last {count} runs, {self.first} to {self.last}" if self.first else f"the last {count} runs"
        return f"{self.title}: {runs}, at most {self.top:,}; {self.columns[-1].label}" if count else self.title


def draw_chart(
    title: str, values: Sequence[tuple[str, int, str]], *, first: str = "", last: str = "", most: int = COLUMNS
) -> Chart:
    """Returns the chart of values (label, number, state), oldest first; of more than `most`, only the latest."""
    shown = values[-most:]
    top = max((number for _, number, _ in shown), default=0)
    scale = scale_of(top)
    columns = place_columns(
        [
            (HEIGHT * number / scale[0] if number else 0.0, state if number else "never", label)
            for label, number, state in shown
        ],
        HEIGHT,
    )
    return Chart(title, top, scale, columns, first, last)


def name_ends(first: datetime, last: datetime) -> tuple[str, str]:
    """Returns the words for the times of the first and the last column: `1 Mar 11:46`, and `11:56` of the same day."""
    begin, end = (f"{at.day} {at:%b %H:%M}" for at in (first, last))
    return begin, f"{last:%H:%M}" if first.date() == last.date() else end


def place_columns(heights: Sequence[tuple[float, str, str]], chart_height: float) -> tuple[Column, ...]:
    """Returns columns of (height, state, label), each in the middle of an equal part of the width.

    A few runs have wide columns with space between them, so that one run does not look like a bar of a hundred percent.
    """
    slot = WIDTH / len(heights) if heights else 0.0
    width = round(min(slot * _SHARE_OF_SLOT, _WIDEST), 1)
    return tuple(
        Column(
            x=round(slot * place + (slot - width) / 2, 1),
            y=round(chart_height - max(_LOWEST, height), 1),
            width=width,
            height=round(max(_LOWEST, height), 1),
            state=state,
            label=label,
        )
        for place, (height, state, label) in enumerate(heights)
    )


def scale_of(top: int) -> tuple[int, ...]:
    """Returns the numbers of a scale that has room for the greatest: a round end, its half and 0."""
    if top <= 1:
        return 1, 0
    unit = 10 ** (math.floor(math.log10(top)))
    end = next((step * unit for step in (1, *_STEPS) if step * unit >= top and (step * unit) % 2 == 0), 10 * unit)
    return end, end // 2, 0
