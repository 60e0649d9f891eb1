"""The verdict on an outbox, which is made once and stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from contexture.storage.manifests import ExpectationResult, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import REPORT_PAGE
from contexture.storage.replay import list_missing
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.report import render_replay_page
from spark_jobs.quality.summary import RunSummary
from spark_jobs.shared.context import store_of


def judge_once(
    order: StageOrder,
    manifest: Manifest,
    frames: AcceptedFrames,
    summary: Callable[[], RunSummary],
    attributes: AcceptedFrames | None = None,
) -> QualityVerdict:
    """Returns the stored verdict on an outbox, or judges the outbox and stores the verdict.

    Args:
        order: the order of the run.
        manifest: the manifest of the outbox.
        frames: the accepted rows, read only if the outbox is judged now.
        summary: returns the counts of the run.
        attributes: the attributes of accepted entities, if the publication has expectations on them.
    """
    outbox = store_of(order).outbox(manifest.outbox)
    if outbox.has_verdict():
        return stored_verdict(order, manifest)
    about = {"outbox": manifest.outbox, "run": order.run}
    return judge(order.publication, frames, summary(), **about, report=outbox.report, attributes=attributes)


def stored_verdict(order: StageOrder, manifest: Manifest) -> QualityVerdict:
    """Returns the stored verdict; for a replay, which has none, writes the verdict and the page of the report.

    The records of a replay were judged before they were archived.
    """
    outbox = store_of(order).outbox(manifest.outbox)
    if manifest.mode == "backfill" and not outbox.has_verdict():
        verdict = _replay_verdict(manifest)
        report = render_replay_page(order.publication, manifest, verdict, datetime.now(UTC))
        # The verdict is written last, because it shows that the report is complete.
        outbox.report.write(REPORT_PAGE, report)
        outbox.write_verdict(verdict)
    return outbox.verdict()


def _replay_verdict(manifest: Manifest) -> QualityVerdict:
    some = ExpectationResult(
        name="archive",
        severity="critical",
        success=manifest.replayed > 0,
        on="outboxes",
        description="The interval's archive holds at least one concluded run",
        observed=f"{manifest.replayed} runs, {manifest.records} records, {manifest.skipped_newer} skipped as outdated",
    )
    whole = ExpectationResult(
        name="whole-archive",
        severity="warning",
        success=not manifest.missing,
        on="outboxes",
        description="Nothing of the interval is missing in what is sent again",
        observed=list_missing(manifest.missing) if manifest.missing else "nothing is missing",
    )
    return QualityVerdict(outbox=manifest.outbox, approved=some.success, results=(some, whole))
