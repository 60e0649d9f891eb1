"""Judging once: the stored verdict of an outbox."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from contexture.storage.manifests import ExpectationResult, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import REPORT_PAGE
from contexture.storage.replay import list_missing
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.report import replay_page
from spark_jobs.quality.summary import RunSummary
from spark_jobs.shared.context import store_of


def judge_once(
    order: StageOrder,
    manifest: Manifest,
    frames: AcceptedFrames,
    summary: Callable[[], RunSummary],
    attributes: AcceptedFrames | None = None,
) -> QualityVerdict:
    """The verdict on one outbox that stands on storage, or else the one that is made now and stands from then on.

    Args:
        order: the run's.
        manifest: of the outbox.
        frames: what was accepted, read only if it is judged now.
        summary: gives the counts of the run.
        attributes: of what was accepted, where something is expected of them.
    """
    outbox = store_of(order).outbox(manifest.outbox)
    if outbox.has_verdict():
        return stored_verdict(order, manifest)
    about = {"outbox": manifest.outbox, "run": order.run}
    return judge(order.publication, frames, summary(), **about, report=outbox.report, attributes=attributes)


def stored_verdict(order: StageOrder, manifest: Manifest) -> QualityVerdict:
    """Returns the verdict on storage; for a replay, which has none, it is made now, with the page of the report.

    What a replay sends was judged when it was archived.
    """
    outbox = store_of(order).outbox(manifest.outbox)
    if manifest.mode == "backfill" and not outbox.has_verdict():
        verdict = _replayed(manifest)
        report = replay_page(order.publication, manifest, verdict, datetime.now(UTC))
        # The verdict is last: it says that all of the report is there.
        outbox.report.write(REPORT_PAGE, report)
        outbox.write_verdict(verdict)
    return outbox.verdict()


def _replayed(manifest: Manifest) -> QualityVerdict:
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
