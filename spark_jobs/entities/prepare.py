"""Preparing entities: landing in, outbox out.

    evaluate (all tasks) ──► plan (driver, narrow rows) ──► assemble (a task per shard)
        │                                                        │
     quarantine/                                          outbox/, state_delta/
        └──────────────► judge (one checkpoint) ──► report/

Its manifest is written last; when that is there already, nothing is done again.
"""

from __future__ import annotations

from typing import Any, Final

from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from spark_jobs.entities.assemble import SUMMARY, assembly
from spark_jobs.entities.attributes import ATTRIBUTE_ROWS, ATTRIBUTES_FOLDER, judges_attributes
from spark_jobs.entities.evaluate import EVALUATED, evaluation
from spark_jobs.entities.manifest import PreparationResult, count, described
from spark_jobs.entities.plan import RULE as DUPLICATE
from spark_jobs.entities.plan import plan, quarantine_conflicts
from spark_jobs.entities.rows import evaluated_folder, evaluated_schema
from spark_jobs.entities.snapshot_rules import snapshot_violations
from spark_jobs.shared.context import StageContext, check_task_results
from spark_jobs.shared.outbox import Stopwatch, preparation_of, prepare_once
from spark_jobs.shared.parquet_rows import read_rows


def prepare(spark: Any, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    """Makes the outbox of one pull.

    Args:
        spark: the session.
        order: what the scheduler asked for.
        landing: what was pulled.
        watch: gets the seconds of each step.

    Returns:
        The outbox's manifest; the outbox is `prepared`.

    Raises:
        ConfigurationError: more identities vanish than may.
        RetriableError: the storage failed.
    """
    preparation = preparation_of(order, landing, landing.digest)
    return prepare_once(preparation, lambda: _prepared(spark, preparation, landing, watch))


def _prepared(spark: Any, preparation: StageContext, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    preparation.store.transfer_claim(preparation.order.run, preparation.outbox)
    with watch.step("evaluate"):
        evaluate(spark, preparation)
    with watch.step("plan"):
        confirmed = preparation.order.confirm_shrink
        planned = plan(
            preparation,
            landed=landing.rows,
            proves_absence=landing.complete,
            confirmed_shrink=confirmed,
            as_of=landing.broker_time,
        )
        quarantine_conflicts(preparation, planned.conflicting)
    with watch.step("assemble"):
        shards = assemble(spark, preparation)
        check_task_results(sum(shard.pop("upserts") for shard in shards), planned.upserts, "rendered events")
    counts = count(preparation, planned)
    with watch.step("snapshot"):
        broken = snapshot_violations(preparation, landing)
        broken |= {"count-drop": planned.dropped, DUPLICATE: planned.contradictions}
    return described(preparation, landing, PreparationResult(planned, counts, shards, broken))


_EMPTY: Final = "empty.parquet"


def evaluate(spark: Any, preparation: StageContext) -> None:
    """Runs the one pass over the landing rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # So that a landing without rows has narrow columns too.
    evaluated_folder(preparation).write_table(_EMPTY, evaluated_schema(preparation).empty_table())
    if judges_attributes(preparation.publication):
        preparation.work.folder(ATTRIBUTES_FOLDER).write_table(_EMPTY, ATTRIBUTE_ROWS.empty_table())
    landed = read_rows(spark, preparation.landing, LANDING)
    landed.mapInArrow(evaluation(preparation), from_arrow_schema(EVALUATED)).collect()


def assemble(spark: Any, preparation: StageContext) -> list[dict[str, int]]:
    """Runs one task per shard; gives a row of SUMMARY for each, by shard."""
    from pyspark.sql.pandas.types import from_arrow_schema

    shards = preparation.publication.publish.shards
    frame = spark.range(0, shards, 1, shards).mapInArrow(assembly(preparation), from_arrow_schema(SUMMARY))
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row["shard"])
