"""From what was prepared to the frames the checkpoint judges, and its stored verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.changes import Verdict as EventVerdict
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.manifest import ExpectationResult, LandingManifest, Manifest, Verdict
from contexture.outbox.orders import StageOrder
from contexture.outbox.storage import Storage
from spark_jobs.preparation.counting import newest_modification
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.columns import column_names
from spark_jobs.quality.summary import RunSummary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENTITY_COLUMNS = ("identity", "service_path", "id", "type", "modified_at", "received_at", "topic")


def judge_outbox(spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> Verdict:
    """The checkpoint's verdict on one outbox; a verdict that is there already stands."""
    storage = Storage(order.home)
    folder = PublicationFolder(order.publication.name)
    if storage.exists(folder.verdict(manifest.outbox)):
        return stored_verdict(order, manifest)
    frame = accepted_entities(spark, order).cache()
    try:
        report = storage.uri(folder.report(manifest.outbox))
        return judge(
            order.publication,
            frame,
            _summary(storage, order, landing, manifest),
            outbox=manifest.outbox,
            run=order.run,
            report=report,
        )
    finally:
        frame.unpersist()


def accepted_entities(spark: SparkSession, order: StageOrder) -> DataFrame:
    """The accepted entities, one row each, with the attributes that the publication's quality names."""
    from pyspark.sql.functions import lit

    storage = Storage(order.home)
    work = PublicationFolder(order.publication.name).work(order.run)
    judged = [f"{kind}_{safe}" for safe in column_names(order.publication).values() for kind in ("type", "value")]
    rows = spark.read.parquet(f"{storage.uri(work)}/evaluated")
    is_accepted = f"verdict <= {int(EventVerdict.UNCHANGED)} AND part = 0"
    service = lit(order.publication.source.service)
    return rows.where(is_accepted).select(*ENTITY_COLUMNS, *judged).withColumn("service", service)


def stored_verdict(order: StageOrder, manifest: Manifest) -> Verdict:
    """The verdict on storage; a replay has none of its own, for what it sends was judged when it was archived."""
    storage = Storage(order.home)
    path = PublicationFolder(order.publication.name).verdict(manifest.outbox)
    if manifest.mode == "backfill" and not storage.exists(path):
        storage.write(path, _replayed(manifest).to_json())
    return Verdict.model_validate_json(storage.read(path))


def _replayed(manifest: Manifest) -> Verdict:
    result = ExpectationResult(
        name="archive",
        severity="critical",
        success=manifest.replayed > 0,
        on="outboxes",
        description="The interval's archive holds at least one concluded run",
        observed=f"{manifest.replayed} runs, {manifest.records} records, {manifest.skipped_newer} skipped as outdated",
    )
    return Verdict(outbox=manifest.outbox, approved=result.success, results=(result,))


def _summary(storage: Storage, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> RunSummary:
    return RunSummary(
        read=manifest.read,
        accepted=manifest.accepted,
        quarantined=manifest.quarantined_entities,
        source_entities=landing.source_count,
        unchanged=manifest.unchanged,
        newest_modified_at=newest_modification(storage, PublicationFolder(order.publication.name).work(order.run)),
        reference_time=landing.finished_at,
        quarantined_by_rule=dict(manifest.quarantined),
        warnings_by_rule=dict(manifest.warnings),
    )
