"""The verdict at the top of a report: whether its latest run passed, and what changed since the run before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from contexture.operations.reports.model import ReportVerdict, RunReport, StoppedRun

_COMPARED: Final = ("read", "quarantined")
"""The members of `RunReport` whose change is shown."""

_NAMED: Final = 3
"""Failed expectations that the sentence names."""


def judge_latest_run(run: RunReport, before: RunReport | None, stopped: Sequence[StoppedRun]) -> ReportVerdict:
    """Returns the verdict on a run; `before` is the last run of the same mode before it."""
    judged_twice = before is not None and run.approved is not None and before.approved is not None
    failing, failed_before = _names(run, success=False), _names(before, success=False)
    held = _names(run, success=True)
    return ReportVerdict(
        outcome=_outcome(run),
        sequence=run.sequence,
        sentence=_sentence(run),
        compared_with=before.sequence if before else None,
        changes={name: getattr(run, name) - getattr(before, name) for name in _COMPARED} if before else {},
        # An expectation that was not judged in this run is not fixed by that.
        new_failures=tuple(name for name in failing if name not in failed_before) if judged_twice else None,
        fixed=tuple(name for name in failed_before if name in held) if judged_twice else None,
        failed_later=sum(each.started_at > run.prepared_at for each in stopped),
    )


def _names(run: RunReport | None, *, success: bool) -> tuple[str, ...]:
    return tuple(each.name for each in run.expectations if each.success is success) if run else ()


def _outcome(run: RunReport) -> Literal["passed", "failed", "unknown"]:
    if run.approved is False or run.status == "rejected":
        return "failed"
    return "unknown" if run.approved is None else "passed"


def _sentence(run: RunReport) -> str:
    judged, failures = len(run.expectations), run.failures
    critical = [each.name for each in failures if each.severity == "critical"]
    if critical:
        named = ", ".join(critical[:_NAMED]) + (", …" if len(critical) > _NAMED else "")
        return f"Run {run.sequence} breaks {len(critical):,} critical of {judged:,} expectations: {named}."
    if run.status == "rejected":
        return f"Run {run.sequence} was rejected, although it breaks no critical expectation that is stored."
    if run.approved is None:
        return f"The verdict on run {run.sequence} is no longer stored."
    if run.approved is False:
        return f"The quality gate did not approve run {run.sequence}."
    refused = f"{run.read:,} read, {run.quarantined:,} quarantined"
    if failures:
        return (
            f"Run {run.sequence} breaks {len(failures):,} of {judged:,} expectations, none of them critical; {refused}."
        )
    return f"Run {run.sequence} meets {judged:,} of {judged:,} expectations; {refused}."
