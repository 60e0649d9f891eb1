"""Preparing structures: landing in, outbox out.

    evaluate (tasks by row group) ──► plan (driver, narrow rows) ──► assemble (one task)
                                          │                              │
                                  evaluated, state_delta/        outbox/, quarantine/

A registry publication has one shard. Its manifest is written last; when that is there already, nothing is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import SHARD_FILE
from spark_jobs.shared.context import StageContext
from spark_jobs.shared.outbox import Stopwatch, preparation_of, prepare_once
from spark_jobs.shared.parquet_rows import Unit, units_of
from spark_jobs.structures.assemble import PLANNED_FILE, QUARANTINED_FILE, SUMMARY, assembly
from spark_jobs.structures.evaluate import EVENTS, evaluation, looked_at_folder
from spark_jobs.structures.manifest import described
from spark_jobs.structures.plan import StructureRunPlan, plan_run
from spark_jobs.structures.rows import LOOKED_AT

_TASKS = 64
"""At most: a task more costs some 50 ms, and one that has much to do holds up the others."""


def prepare_structures(spark: Any, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    """Makes the outbox of one pull from a registry.

    Args:
        spark: the session.
        order: what the scheduler asked for.
        landing: what was pulled.
        watch: gets the seconds of each step.

    Returns:
        The outbox's manifest; the outbox is `prepared`.

    Raises:
        ConfigurationError: more structures are gone than may, or Kafka takes two topics for one.
        RetriableError: the storage failed.
    """
    # Whether it is whole, and up to which transaction, decides what the same files mean.
    digest = f"{landing.digest} {landing.complete} {landing.registry_transaction} {order.baseline}"
    if order.mode == "backfill":
        digest = f"{digest} {order.run} {landing.skipped_transactions} {order.replay.to_json().decode()}"
    preparation = preparation_of(order, landing, digest)
    return prepare_once(preparation, lambda: _prepared(spark, preparation, landing, watch))


def _prepared(spark: Any, preparation: StageContext, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    units = units_of(preparation.landing)
    with watch.step("evaluate"):
        evaluate(spark, preparation, units)
    with watch.step("plan"):
        planned = plan_run(preparation, landing)
        _save(preparation, planned)
    with watch.step("assemble"):
        size = assemble(spark, preparation, units) if planned.records.num_rows or planned.quarantined.num_rows else 0
    return described(preparation, landing, planned, size)


def evaluate(spark: Any, preparation: StageContext, units: Sequence[Unit]) -> None:
    """Runs the one pass over the bodies."""
    # So that a landing without rows has narrow columns too.
    looked_at_folder(preparation.work).write_table("empty.parquet", LOOKED_AT.empty_table())
    if units:
        numbers = spark.range(0, len(units), 1, min(len(units), _TASKS))
        numbers.mapInArrow(evaluation(preparation, units), EVENTS).collect()


def assemble(spark: Any, preparation: StageContext, units: Sequence[Unit]) -> int:
    """Writes the shard and the quarantine; returns the bytes of the shard's keys and values."""
    frame = spark.range(0, 1, 1, 1).mapInArrow(assembly(preparation, units), SUMMARY)
    return sum(int(row.asDict()["bytes"]) for row in frame.collect())


def _save(preparation: StageContext, planned: StructureRunPlan) -> None:
    work = preparation.work
    # The quality of these rows is checked.
    work.folder("evaluated").write_table(SHARD_FILE, planned.rows)
    work.write_table(PLANNED_FILE, planned.records)
    work.write_table(QUARANTINED_FILE, planned.quarantined)
