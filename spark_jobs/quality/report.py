"""The quality report of a run as one page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.publications import Publication
from contexture.storage.manifests import ExpectationResult, Manifest, QualityVerdict
from spark_jobs.quality.great_expectations_project import EXAMPLES, ExpectationRun
from spark_jobs.quality.summary import RunSummary

LONGEST_TEXT = 120


@dataclass(frozen=True, slots=True)
class ObservedResult:
    """A judged expectation with a few of the rows that broke it, for pages and never for logs."""

    result: ExpectationResult
    examples: tuple[str, ...] = ()


def describe_outcome(outcome: ExpectationRun, summary: RunSummary) -> ObservedResult:
    """Describes an outcome in words; an expectation that raised has judged nothing and counts as failed."""
    expected, raised = outcome.expected, outcome.refused or _raised(outcome.document)
    result = ExpectationResult(
        name=expected.name,
        severity=expected.severity,
        success=raised is None and bool(outcome.document["success"]),
        on=expected.on,
        description=expected.description,
        observed="could not be checked" if raised else _observed(outcome, summary),
        raised=_short(raised) if raised else None,
    )
    return ObservedResult(result, () if raised else tuple(_examples(outcome.document)))


def _raised(document: Mapping[str, Any]) -> str | None:
    """Returns the message of the first exception; GX stores it directly, or below each metric."""
    info = document.get("exception_info") or {}
    parts = [info, *(part for part in info.values() if isinstance(part, dict))]
    return next((str(part.get("exception_message")) for part in parts if part.get("raised_exception")), None)


def _observed(outcome: ExpectationRun, summary: RunSummary) -> str:
    if outcome.expected.on == "summary":
        return summary.observed(str(outcome.expected.kwargs["column"]))
    result = outcome.document.get("result") or {}
    if "unexpected_count" in result:
        # Both are null if `where` selects no row.
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


SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page.

    Attributes:
        replay: the manifest of an outbox that was made of the archive; no rows were read or judged for it.
    """

    publication: Publication
    run: str
    summary: RunSummary
    verdict: QualityVerdict
    findings: Sequence[ObservedResult]
    judged_at: datetime
    seconds: float
    replay: Manifest | None = None

    @property
    def findings_worst_first(self) -> list[ObservedResult]:
        """The failed expectations, critical ones first, and then those that are met."""
        return sorted(self.findings, key=lambda each: (each.result.success, SEVERITIES.index(each.result.severity)))


def render_page(report: Report) -> bytes:
    """Renders the page as UTF-8 HTML; every text is escaped, because ids and values are untrusted input."""
    environment = Environment(
        loader=PackageLoader("spark_jobs.quality"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "moment": _moment}
    return environment.get_template("report.html.j2").render(report=report).encode()


def render_replay_page(
    publication: Publication, manifest: Manifest, verdict: QualityVerdict, judged_at: datetime
) -> bytes:
    """Renders the page of an outbox that was made of the archive, as UTF-8 HTML."""
    summary = RunSummary(
        read=manifest.read,
        accepted=manifest.accepted,
        quarantined=0,
        in_source=None,
        unchanged=0,
        newest_modified_at=None,
        reference_time=judged_at,
        retried=True,
    )
    findings = [ObservedResult(result) for result in verdict.results]
    return render_page(Report(publication, manifest.run, summary, verdict, findings, judged_at, 0.0, replay=manifest))


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "not known" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
