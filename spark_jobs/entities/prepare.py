"""The preparation of entities: from a landing to an outbox.

    evaluate (all tasks) ──► plan (driver, narrow rows) ──► assemble (a task per shard)
        │                                                        │
     quarantine/                                          outbox/, state_delta/
        └──────────────► judge (one checkpoint) ──► report/

The manifest of the outbox is written last. If it exists already, nothing is done again.
"""

from __future__ import annotations

from typing import Any, Final

from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from spark_jobs.entities.assemble import SUMMARY, assembly
from spark_jobs.entities.attributes import ATTRIBUTE_ROWS, ATTRIBUTES_FOLDER, judges_attributes
from spark_jobs.entities.evaluate import EVALUATED, evaluation
from spark_jobs.entities.manifest import PreparationResult, build_manifest, count_events
from spark_jobs.entities.plan import RULE as DUPLICATE
from spark_jobs.entities.plan import plan, quarantine_conflicts
from spark_jobs.entities.rows import evaluated_folder, evaluated_schema
from spark_jobs.entities.snapshot_rules import snapshot_violations
from spark_jobs.shared.context import StageContext, check_task_results
from spark_jobs.shared.outbox import Stopwatch, build_context, prepare_once
from spark_jobs.shared.parquet_rows import read_rows


def prepare(spark: Any, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    """Makes the outbox of one landing.

    Args:
        spark: the session.
        order: the order of the run.
        landing: what was read.
        watch: receives the seconds of each step.

    Returns:
        The outbox's manifest; the outbox is `prepared`.

    Raises:
        ConfigurationError: more identities vanish than may.
        RetriableError: the storage failed.
    """
    context = build_context(order, landing, landing.digest)
    return prepare_once(context, lambda: _prepare(spark, context, landing, watch))


def _prepare(spark: Any, context: StageContext, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    context.store.transfer_claim(context.order.run, context.outbox)
    with watch.step("evaluate"):
        evaluate(spark, context)
    with watch.step("plan"):
        confirmed = context.order.confirm_shrink
        planned = plan(
            context,
            landed=landing.rows,
            proves_absence=landing.complete,
            confirmed_shrink=confirmed,
            as_of=landing.broker_time,
        )
        quarantine_conflicts(context, planned.conflicting)
    with watch.step("assemble"):
        shards = assemble(spark, context)
        check_task_results(sum(shard.pop("upserts") for shard in shards), planned.upserts, "rendered events")
    counts = count_events(context, planned)
    with watch.step("snapshot"):
        broken = snapshot_violations(context, landing)
        broken |= {"count-drop": planned.dropped, DUPLICATE: planned.contradictions}
    return build_manifest(context, landing, PreparationResult(planned, counts, shards, broken))


_EMPTY: Final = "empty.parquet"


def evaluate(spark: Any, context: StageContext) -> None:
    """Runs the one pass over the landing rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # A landing without rows needs a file with the narrow columns too.
    evaluated_folder(context).write_table(_EMPTY, evaluated_schema(context).empty_table())
    if judges_attributes(context.publication):
        context.work.folder(ATTRIBUTES_FOLDER).write_table(_EMPTY, ATTRIBUTE_ROWS.empty_table())
    landed = read_rows(spark, context.landing, LANDING)
    landed.mapInArrow(evaluation(context), from_arrow_schema(EVALUATED)).collect()


def assemble(spark: Any, context: StageContext) -> list[dict[str, int]]:
    """Runs one task per shard; returns a row of SUMMARY for each, by shard."""
    from pyspark.sql.pandas.types import from_arrow_schema

    shards = context.publication.publish.shards
    frame = spark.range(0, shards, 1, shards).mapInArrow(assembly(context), from_arrow_schema(SUMMARY))
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row["shard"])
