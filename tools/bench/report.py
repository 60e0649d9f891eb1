"""The table of measures: for the terminal, as Markdown, for the page of the documentation, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from rich.table import Table

from tools.bench.machine import Machine
from tools.bench.measures import Measure, shown

BEGIN = "<!-- figures: begin (written by python -m tools.bench --write) -->"
END = "<!-- figures: end -->"
COLUMNS = ("bench", "measured", "ours", "against", "peer", "ratio", "spread", "target", "")
PAGE_COLUMNS = ("bench", "measured", "against", "ratio", "spread", "target", "")


def cells(measure: Measure) -> tuple[str, ...]:
    """One measure as texts, in the order of COLUMNS."""
    return (
        measure.bench,
        measure.what,
        f"{shown(median(measure.ours))} {measure.unit}",
        measure.against or "-",
        f"{shown(median(measure.peer))} {measure.unit}" if measure.peer else "-",
        f"{measure.ratio:.2f}" if measure.ratio is not None else "-",
        spread(measure.ratios or measure.ours),
        str(measure.target) if measure.target else "-",
        {True: "met", False: "missed", None: ""}[measure.met],
    )


def spread(figures: Sequence[float]) -> str:
    """The least and the greatest."""
    low, high = min(figures), max(figures)
    return f"{low:.2f} to {high:.2f}" if high < 100 else f"{shown(low)} to {shown(high)}"


def terminal_table(measures: Iterable[Measure]) -> Table:
    """For rich."""
    table = Table(*COLUMNS, title="medians of alternating pairs")
    for measure in measures:
        style = "red" if measure.met is False else ""
        table.add_row(*cells(measure), style=style)
    return table


def markdown(measures: Iterable[Measure], machine: Machine, moment: datetime) -> str:
    """The table with the machine it belongs to."""
    head = [f"Taken on {moment.astimezone(UTC):%d %B %Y}.", ""]
    head += [f"- {name}: {value}" for name, value in machine.lines()]
    rows = ["| " + " | ".join(row) + " |" for row in (COLUMNS, ("---",) * len(COLUMNS), *map(cells, measures))]
    return "\n".join([*head, "", *rows])


def page_table(measures: Iterable[Measure], machine: Machine, moment: datetime) -> str:
    """Returns what the documentation shows: the measures that have a target, as ratios."""
    rows = [row_of_page(measure) for measure in measures if measure.target]
    table = ["| " + " | ".join(row) + " |" for row in (PAGE_COLUMNS, ("---",) * len(PAGE_COLUMNS), *rows)]
    about = "; ".join(f"{name}: {value}" for name, value in machine.lines())
    return "\n".join([f"Taken on {moment.astimezone(UTC):%d %B %Y}. {about}.", "", *table])


def row_of_page(measure: Measure) -> tuple[str, ...]:
    """Returns one measure as texts, in the order of PAGE_COLUMNS; our own figure where there is no peer."""
    bench, what, ours, against, _, ratio, *others = cells(measure)
    return (bench, what, against, ours if measure.ratio is None else ratio, *others)


def write_between_markers(page: Path, text: str) -> None:
    """Puts `text` between the two markers of a page; the rest of it stays as it is.

    Raises:
        ValueError: the page has no such markers.
    """
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def write_json(file: Path, measures: Iterable[Measure], machine: Machine, moment: datetime) -> None:
    """All figures, single ones too."""
    document = {
        "at": moment.astimezone(UTC).isoformat(),
        "machine": machine.as_dict(),
        "measures": [measure.as_dict() for measure in measures],
    }
    file.write_text(json.dumps(document, indent=1) + "\n")
