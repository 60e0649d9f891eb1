"""The checkpoint of a run: it evaluates expectations, writes documents, and writes the verdict last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from contexture.publications import Publication
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import QualityVerdict
from contexture.storage.quarantine import RuleSample, RuleSamples
from spark_jobs.quality.data_docs import copy_data_docs
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.great_expectations_project import (
    ATTRIBUTES,
    ExpectationRun,
    Project,
    open_project,
    pass_without_rows,
)
from spark_jobs.quality.report import ObservedResult, Report, describe_outcome, render_page
from spark_jobs.quality.suite import Expected, suite
from spark_jobs.quality.summary import RunSummary, StructureSummary


def judge(
    publication: Publication,
    rows: AcceptedFrames,
    summary: RunSummary,
    *,
    outbox: str,
    run: str,
    report: StoredFolder,
    attributes: AcceptedFrames | None = None,
) -> QualityVerdict:
    """Judges what a run accepted, and writes the report for people and the verdict for the gate.

    Args:
        publication: the publication with its expectations.
        rows: one row for each accepted entity or structure.
        summary: the counts of the run.
        outbox: id of the judged outbox.
        run: id of the run.
        report: the folder that receives `index.html`, `data_docs/`, `gx_result.json`, `samples.json` and
            `verdict.json`, which is written last because it shows that the report is complete.
        attributes: one row for each attribute of these entities; None if no expectation is about attributes.

    Returns:
        The verdict. Expectations that failed or raised are results in it, and raise nothing here.

    Raises:
        RetriableError: the folder could not be written.
    """
    began = monotonic()
    report.remove("verdict.json")
    report.remove("data_docs")
    expectations = suite(
        publication,
        of_snapshot=not summary.retried,
        in_turn=summary.notified > 0,
        nothing_yet=summary.is_nothing_yet,
    )
    with open_project() as gx:
        outcomes = _evaluate(gx, expectations, rows, attributes, summary)
        copy_data_docs(gx.build_data_docs(), gx.validations, report.folder("data_docs"))
    findings = [describe_outcome(each, summary) for each in _in_order(outcomes, [each.name for each in expectations])]
    verdict = _verdict(outbox, findings)
    documents = [each.document for each in outcomes if each.document.get("expectation_config")]
    report.write("gx_result.json", json.dumps(documents, indent=1).encode())
    report.write("samples.json", _samples(outbox, summary, findings).to_json())
    shown = Report(publication, run, summary, verdict, findings, datetime.now(UTC), monotonic() - began)
    report.write("index.html", render_page(shown))
    report.write("verdict.json", verdict.to_json())
    return verdict


def _evaluate(
    gx: Project,
    expectations: Sequence[Expected],
    rows: AcceptedFrames,
    attributes: AcceptedFrames | None,
    summary: RunSummary,
) -> list[ExpectationRun]:
    outcomes = gx.judge_summary(summary.row(), expectations)
    if summary.accepted:
        outcomes += gx.judge_rows(summary.subject, rows, summary.reference_time, expectations)
    else:
        outcomes += [pass_without_rows(each) for each in expectations if each.on == summary.subject.frame]
    if summary.accepted and attributes is not None:
        outcomes += gx.judge_attributes(attributes, summary.reference_time, expectations)
    else:
        outcomes += [pass_without_rows(each) for each in expectations if each.on == ATTRIBUTES]
    return outcomes


def _samples(outbox: str, summary: RunSummary, findings: Sequence[ObservedResult]) -> RuleSamples:
    rules: dict[str, list[RuleSample]] = {rule: list(found) for rule, found in summary.broken.items()}
    if isinstance(summary, StructureSummary):
        for each in summary.samples:
            rules.setdefault(each.rule, []).append(RuleSample(identity=each.urn, message=each.message))
    examples = {each.result.name: each.examples for each in findings if each.examples}
    return RuleSamples(
        outbox=outbox, rules={rule: tuple(found) for rule, found in rules.items()}, expectations=examples
    )


def _in_order(outcomes: Sequence[ExpectationRun], names: Sequence[str]) -> list[ExpectationRun]:
    return sorted(outcomes, key=lambda outcome: names.index(outcome.expected.name))


def _verdict(outbox: str, findings: Sequence[ObservedResult]) -> QualityVerdict:
    results = tuple(each.result for each in findings)
    approved = not any(result.severity == "critical" and not result.success for result in results)
    return QualityVerdict(outbox=outbox, approved=approved, results=results)
