"""A report as one HTML file: no script, nothing loaded from anywhere, light or dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.operations.page.plots import COLUMN_WIDTH, COLUMNS, HEIGHT
from contexture.operations.reports.charts import charts, rule_chart
from contexture.operations.reports.documents import QualityReport, RunReport

LATEST: Final = 200
"""Runs in the table; JSON has all of them."""

DETAILED: Final = 20
"""Runs that are shown with everything: the latest, and the latest of those that something is wrong with."""

_RULES_DRAWN: Final = 20
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def page(report: QualityReport) -> bytes:
    """The report as UTF-8 HTML; every text in it is escaped, for names and messages come from anybody."""
    template = _environment().get_template("report.html.j2")
    drawn = [rule_chart(report.runs, each.rule, each.severity) for each in report.rules[:_RULES_DRAWN]]
    return template.render(
        report=report,
        latest=report.runs[::-1][:LATEST],
        detailed=detailed(report.runs),
        charts=charts(report.runs, report.many),
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
    environment.filters |= {"number": _number, "moment": _moment, "size": _size, "change": _change}
    environment.globals |= {"plot_width": COLUMNS * COLUMN_WIDTH, "plot_height": HEIGHT, "column_width": COLUMN_WIDTH}
    return environment


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "-" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _change(share: float | None) -> str:
    return "" if not share else f"{share:+.1%}"


def _size(value: int) -> str:
    amount, unit = float(value), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
