"""What Great Expectations found, in the words of a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contexture.storage.manifests import ExpectationResult
from spark_jobs.quality.project import EXAMPLES, Outcome
from spark_jobs.quality.summary import RunSummary

LONGEST_TEXT = 120


@dataclass(frozen=True, slots=True)
class Finding:
    """A judged expectation with a few of the rows that broke it: for pages, never for logs."""

    result: ExpectationResult
    examples: tuple[str, ...] = ()


def finding(outcome: Outcome, summary: RunSummary) -> Finding:
    """One outcome in words; an expectation that raised has not judged anything, so it counts as failed."""
    expected, raised = outcome.expected, outcome.refused or _raised(outcome.document)
    result = ExpectationResult(
        name=expected.name,
        severity=expected.severity,
        success=raised is None and bool(outcome.document["success"]),
        on=expected.on,
        description=expected.description,
        observed="could not be judged" if raised else _observed(outcome, summary),
        raised=_short(raised) if raised else None,
    )
    return Finding(result, () if raised else tuple(_examples(outcome.document)))


def _raised(document: Mapping[str, Any]) -> str | None:
    """The message of the first exception; GX files it directly, or once more below each metric."""
    info = document.get("exception_info") or {}
    parts = [info, *(part for part in info.values() if isinstance(part, dict))]
    return next((str(part.get("exception_message")) for part in parts if part.get("raised_exception")), None)


def _observed(outcome: Outcome, summary: RunSummary) -> str:
    if outcome.expected.on == "summary":
        return summary.observed(str(outcome.expected.kwargs["column"]))
    result = outcome.document.get("result") or {}
    if "unexpected_count" in result:
        # Both are null where `where` selects no row.
        return f"{result['unexpected_count'] or 0:,} of {result['element_count'] or 0:,} rows break it"
    return _short(f"observed {result['observed_value']}") if "observed_value" in result else "no rows"


def _examples(document: Mapping[str, Any]) -> Iterator[str]:
    result = document.get("result") or {}
    rows = [row for row in result.get("partial_unexpected_index_list") or [] if isinstance(row, dict)]
    for row in rows[:EXAMPLES]:
        yield _short(" · ".join(dict.fromkeys(str(value) for value in row.values() if value is not None)))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[: LONGEST_TEXT - 1]}…"
