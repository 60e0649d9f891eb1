"""The report of a run as one page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined

from contexture.publications import Publication
from contexture.storage.manifests import Manifest, Verdict
from spark_jobs.quality.observations import Finding
from spark_jobs.quality.summary import RunSummary

SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows.

    Attributes:
        replay: the manifest of an outbox that was made of the archive; nothing was read or judged row by row for it.
    """

    publication: Publication
    run: str
    summary: RunSummary
    verdict: Verdict
    findings: Sequence[Finding]
    judged_at: datetime
    seconds: float
    replay: Manifest | None = None

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


def replay_page(publication: Publication, manifest: Manifest, verdict: Verdict, judged_at: datetime) -> bytes:
    """Returns the page of an outbox that was made of the archive, as UTF-8 HTML."""
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
    findings = [Finding(result) for result in verdict.results]
    return page(Report(publication, manifest.run, summary, verdict, findings, judged_at, 0.0, replay=manifest))


def _number(value: int | None) -> str:
    return "not known" if value is None else f"{value:,}"


def _moment(value: datetime | None) -> str:
    return "not known" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
