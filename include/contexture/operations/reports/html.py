"""A report as one HTML file: no script, nothing loaded from anywhere, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.operations.reports.model import QualityReport, RunReport
from contexture.operations.status.charts import COLUMNS, HEIGHT, WIDTH, Chart, draw_chart, name_ends

Value = tuple[str, int, str]


def charts(runs: Sequence[RunReport], many: str) -> tuple[Chart, ...]:
    """The charts of runs that are given oldest first."""
    drawn = [
        _over(f"{many.capitalize()} in the source", runs, lambda run: run.in_source, "pending"),
        _over("Events read", runs, lambda run: run.read, "pending"),
        _over("Quarantined by rules", runs, lambda run: run.quarantined, "failed"),
        _over("Warnings of rules", runs, lambda run: run.warnings, "waiting"),
        _failures(runs),
        _over("New types of attributes", runs, _new_types, "waiting"),
        _over("Records", runs, lambda run: run.records, "sent"),
    ]
    # Where no run knows a number, there is nothing to show; a number that is 0 all along is shown.
    return tuple(each for each in drawn if each.columns)


def rule_chart(runs: Sequence[RunReport], rule: str, severity: str) -> Chart:
    """How often one rule was broken, run by run."""

    def count(run: RunReport) -> int:
        return sum(each.count for each in run.rules if (each.rule, each.severity) == (rule, severity))

    return _over(rule, runs, count, "failed" if severity == "error" else "waiting")


def grouped(values: Sequence[Value], columns: int = COLUMNS) -> list[Value]:
    """At most so many values: each is the greatest of as many neighbours as it takes, and keeps its label."""
    size = -(-len(values) // columns) or 1
    # From the end: the latest group is whole, and the oldest may be smaller.
    ends = range(len(values), 0, -size)
    return [max(values[max(0, end - size) : end], key=lambda value: value[1]) for end in ends][::-1]


def _over(title: str, runs: Sequence[RunReport], value: Callable[[RunReport], int | None], state: str) -> Chart:
    known = [(run, number) for run in runs if (number := value(run)) is not None]
    return _draw(title, [run for run, _ in known], [(_said(run, number), number, state) for run, number in known])


def _draw(title: str, runs: Sequence[RunReport], values: Sequence[Value]) -> Chart:
    """Draws a value of each of the runs; the axis names the times of the first and the last of them."""
    if not runs:
        return draw_chart(title, ())
    first, last = name_ends(runs[0].prepared_at.astimezone(UTC), runs[-1].prepared_at.astimezone(UTC))
    return draw_chart(title, grouped(values), first=first, last="" if len(runs) == 1 else last)


def _new_types(run: RunReport) -> int | None:
    return None if run.attributes is None else len(run.new_types)


def _failures(runs: Sequence[RunReport]) -> Chart:
    judged = [run for run in runs if run.approved is not None]
    values = [
        (_said(run, len(run.failures)), len(run.failures), "waiting" if run.approved else "failed") for run in judged
    ]
    return _draw("Failed expectations", judged, values)


def _said(run: RunReport, value: int) -> str:
    return f"run {run.sequence}, {run.prepared_at:%Y-%m-%d %H:%M}: {value:,}"


TREND: Final = 30
"""The latest runs, each of which has a column of its own in the trend."""

LATEST: Final = 200
"""Runs in the table; JSON has all of them."""

DETAILED: Final = 20
"""Runs that are shown with everything: the latest, and the latest of those that something is wrong with."""

_RULES_DRAWN: Final = 20
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def page(report: QualityReport, quarantine_page: str | None = None) -> bytes:
    """Renders the report as UTF-8 HTML; every text is escaped, because names and messages are untrusted input.

    Args:
        report: the report.
        quarantine_page: the address of the publication's quarantine; None for a file, which has nothing to link to.
    """
    template = _environment().get_template("report.html.j2")
    drawn = [rule_chart(report.runs, each.rule, each.severity) for each in report.rules[:_RULES_DRAWN]]
    return template.render(
        report=report,
        quarantine_page=quarantine_page,
        latest=report.runs[::-1][:LATEST],
        detailed=detailed(report.runs),
        trend=charts(report.runs[-TREND:], report.many),
        # Of more runs than the trend has, all are shown too, several in a column.
        charts=charts(report.runs, report.many) if len(report.runs) > TREND else (),
        rules_drawn=drawn,
    ).encode()


def detailed(runs: Sequence[RunReport]) -> list[RunReport]:
    """The runs that are shown with everything, the latest first."""
    chosen = [run for place, run in enumerate(reversed(runs)) if place == 0 or _is_wrong(run)]
    return chosen[:DETAILED]


def _is_wrong(run: RunReport) -> bool:
    return bool(run.failures or run.quarantined or run.new_types)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("contexture.operations.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "moment": _moment,
        "size": _size,
        "change": _change,
        "signed": _signed,
        "percent": _percent,
    }
    environment.globals |= {"chart_width": WIDTH, "chart_height": HEIGHT, "most_columns": COLUMNS, "most_trend": TREND}
    return environment


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _change(share: float | None) -> str:
    return "" if not share else f"{share:+.1%}"


def _signed(value: int) -> str:
    return f"{value:+,}" if value else "±0"


def _percent(value: float) -> str:
    return f"{value:g} %"


def _size(value: int) -> str:
    amount, unit = float(value), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
