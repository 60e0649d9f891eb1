"""The plots of a report: one number over runs; where there are more runs than columns, the greatest of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contexture.operations.page.plots import COLUMNS, Plot, plot
from contexture.operations.reports.documents import RunReport

Value = tuple[str, int, str]


def charts(runs: Sequence[RunReport], many: str) -> tuple[Plot, ...]:
    """The plots of runs that are given oldest first."""
    drawn = [
        _over(f"{many.capitalize()} in the source", runs, lambda run: run.in_source, "pending"),
        _over("Events read", runs, lambda run: run.read, "pending"),
        _over("Held back by rules", runs, lambda run: run.quarantined, "failed"),
        _over("Warnings of rules", runs, lambda run: run.warnings, "waiting"),
        _failures(runs),
        _over("New types of attributes", runs, _new_types, "waiting"),
        _over("Records", runs, lambda run: run.records, "sent"),
    ]
    # Where no run knows a number, there is nothing to show; a number that is 0 all along is told.
    return tuple(each for each in drawn if each.columns)


def rule_chart(runs: Sequence[RunReport], rule: str, severity: str) -> Plot:
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


def _over(title: str, runs: Sequence[RunReport], value: Callable[[RunReport], int | None], state: str) -> Plot:
    numbers = [(run, value(run)) for run in runs]
    return plot(title, grouped([(_said(run, number), number, state) for run, number in numbers if number is not None]))


def _new_types(run: RunReport) -> int | None:
    return None if run.attributes is None else len(run.new_types)


def _failures(runs: Sequence[RunReport]) -> Plot:
    judged = [run for run in runs if run.approved is not None]
    values = [
        (_said(run, len(run.failures)), len(run.failures), "waiting" if run.approved else "failed") for run in judged
    ]
    return plot("Failed expectations", grouped(values))


def _said(run: RunReport, value: int) -> str:
    return f"run {run.sequence}, {run.prepared_at:%Y-%m-%d %H:%M}: {value:,}"
