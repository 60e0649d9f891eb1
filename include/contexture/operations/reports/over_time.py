"""What the runs of a report come to: sums, rules and expectations over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contexture.operations.reports.documents import ExpectationOverTime, JudgedExpectation, RuleOverTime, RunReport

TOTALS: Final = ("read", "accepted", "quarantined", "upserts", "deletes", "records", "bytes", "dead_letters")
"""The members of `RunReport` that are summed up."""


def totals(runs: Sequence[RunReport]) -> dict[str, int]:
    """Sums over the runs."""
    return {name: sum(getattr(run, name) for run in runs) for name in TOTALS}


def rules(runs: Sequence[RunReport]) -> tuple[RuleOverTime, ...]:
    """Each rule that was broken: errors first, those that were broken most before the others."""
    found: dict[tuple[str, str], RuleOverTime] = {}
    for run in runs:
        for each in run.rules:
            before = found.get((each.rule, each.severity))
            found[each.rule, each.severity] = RuleOverTime(
                rule=each.rule,
                severity=each.severity,
                runs=(before.runs if before else 0) + 1,
                count=(before.count if before else 0) + each.count,
                last_at=run.prepared_at,
            )
    return tuple(sorted(found.values(), key=lambda each: (each.severity, -each.count, each.rule)))


def expectations(runs: Sequence[RunReport]) -> tuple[ExpectationOverTime, ...]:
    """Each expectation that was judged: those that failed most often first, else as the last run has them."""
    judged: dict[str, list[tuple[RunReport, JudgedExpectation]]] = {}
    for run in reversed(runs):
        for each in run.expectations:
            judged.setdefault(each.name, []).append((run, each))
    found = [_expectation(name, each) for name, each in judged.items()]
    return tuple(sorted(found, key=lambda each: -each.failed))


def _expectation(name: str, judged: Sequence[tuple[RunReport, JudgedExpectation]]) -> ExpectationOverTime:
    """`judged`: the latest first."""
    latest = judged[0][1]
    failed = [run.prepared_at for run, each in judged if not each.success]
    return ExpectationOverTime(
        name=name,
        severity=latest.severity,
        on=latest.on,
        description=latest.description,
        judged=len(judged),
        failed=len(failed),
        last_failed_at=failed[0] if failed else None,
        observed=latest.observed,
    )
