"""The preparation of structures, from the landing to the outbox.

    evaluate (tasks by row group) ──► plan (driver, narrow rows) ──► assemble (one task)
                                          │                              │
                                  evaluated, state_delta/        outbox/, quarantine/

A registry publication has one shard. Its manifest is written last; if it exists already, nothing is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import SHARD_FILE
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.outbox import Stopwatch, build_context, prepare_once
from spark_jobs.shared.parquet_rows import Unit, units_of
from spark_jobs.structures.assemble import PLANNED_FILE, QUARANTINED_FILE, SUMMARY, assembly
from spark_jobs.structures.evaluate import EVENTS, evaluation, unplanned_folder
from spark_jobs.structures.manifest import build_manifest
from spark_jobs.structures.plan import StructureRunPlan, plan_run
from spark_jobs.structures.rows import UNPLANNED

_TASKS = 64
"""The largest number of tasks: each costs some 50 ms, but a task with much to do delays the others."""


def prepare_structures(spark: Any, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    """Prepares the outbox of one run of a registry publication.

    Args:
        spark: the session.
        order: of the stage.
        landing: of the run.
        watch: records the seconds of each step.

    Returns:
        The outbox's manifest; the outbox is `prepared`.

    Raises:
        ConfigurationError: more structures are gone than the limits allow, or Kafka takes two topics for one.
        RetriableError: the storage failed.
    """
    # The same files have another meaning in a complete landing, or up to another transaction.
    digest = f"{landing.digest} {landing.complete} {landing.registry_transaction} {order.baseline}"
    if order.mode == "backfill":
        digest = f"{digest} {order.run} {landing.skipped_transactions} {order.replay.to_json().decode()}"
    preparation = build_context(order, landing, digest)
    return prepare_once(preparation, lambda: _prepare(spark, preparation, landing, watch))


def _prepare(spark: Any, preparation: StageContext, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    units = units_of(preparation.landing)
    with watch.step("evaluate"):
        evaluate(spark, preparation, units)
    with watch.step("plan"):
        planned = plan_run(preparation, landing)
        _save(preparation, planned)
    with watch.step("assemble"):
        size = assemble(spark, preparation, units) if planned.records.num_rows or planned.quarantined.num_rows else 0
    return build_manifest(preparation, landing, planned, size)


def evaluate(spark: Any, preparation: StageContext, units: Sequence[Unit]) -> None:
    """Runs the one pass over the bodies."""
    # A landing without rows needs the columns too.
    unplanned_folder(preparation.work).write_table("empty.parquet", UNPLANNED.empty_table())
    if units:
        numbers = spark.range(0, len(units), 1, min(len(units), _TASKS))
        numbers.mapInArrow(evaluation(preparation, units), EVENTS).collect()


def assemble(spark: Any, preparation: StageContext, units: Sequence[Unit]) -> int:
    """Writes the shard and the quarantine; returns the bytes of the shard's keys and values."""
    frame = spark.range(0, 1, 1, 1).mapInArrow(assembly(preparation, units), SUMMARY)
    return sum(int(row.asDict()["bytes"]) for row in frame.collect())


def _save(preparation: StageContext, planned: StructureRunPlan) -> None:
    work = preparation.work
    # The checkpoint reads these rows.
    work.folder("evaluated").write_table(SHARD_FILE, planned.rows)
    work.write_table(PLANNED_FILE, planned.records)
    work.write_table(QUARANTINED_FILE, planned.quarantined)
