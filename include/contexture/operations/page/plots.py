"""Plots of one number over runs, as columns of a fixed place: what draws them needs no arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS = 40
COLUMN_WIDTH = 14
HEIGHT = 90
_LOWEST = 1.5


@dataclass(frozen=True, slots=True)
class Column:
    """One run in a plot.

    Attributes:
        x: its left side.
        height: of `HEIGHT`; something is drawn where the number is 0 too, so that the run shows.
        state: what gives it its colour.
        label: what a person reads when pointing at it.
    """

    x: int
    height: float
    state: str
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A number over runs; `top` is the greatest, as high as the plot."""

    title: str
    top: int
    columns: tuple[Column, ...]


def plot(title: str, values: Sequence[tuple[str, int, str]]) -> Plot:
    """The plot of values (label, number, state), oldest first; the latest are at the right."""
    shown = values[-COLUMNS:]
    top = max((number for _, number, _ in shown), default=0)
    return Plot(
        title,
        top,
        tuple(
            Column(
                x=(COLUMNS - len(shown) + place) * COLUMN_WIDTH,
                height=round(max(_LOWEST, HEIGHT * number / top if top else 0.0), 1),
                state=state if number else "never",
                label=label,
            )
            for place, (label, number, state) in enumerate(shown)
        ),
    )
