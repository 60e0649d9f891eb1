"""The report of a run as one page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.outbox.manifest import Verdict
from contexture.publications import Publication
from spark_jobs.quality.observations import Finding
from spark_jobs.quality.summary import RunSummary

SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows."""

    publication: Publication
    run: str
    summary: RunSummary
    verdict: Verdict
    findings: Sequence[Finding]
    judged_at: datetime
    seconds: float

    @property
    def findings_worst_first(self) -> list[Finding]:
        """What failed, the critical first, and then what holds."""
        return sorted(self.findings, key=lambda each: (each.result.success, SEVERITIES.index(each.result.severity)))


def page(report: Report) -> bytes:
    """The page as UTF-8 HTML; every text in it is escaped, for ids and values come from anybody."""
    environment = Environment(
        loader=PackageLoader("spark_jobs.quality"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "moment": _moment}
    return environment.get_template("report.html.j2").render(report=report).encode()


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "not known" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
