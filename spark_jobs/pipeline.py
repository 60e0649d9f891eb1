"""The phases of a stage on one Spark session: read, prepare, judge.

A source is a context broker or a structure registry.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from contexture.sources.http.connection import BrokerConnection
from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.quarantine import write_retry_landing
from contexture.storage.state import State
from spark_jobs.entities.history import land_history
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.prepare import prepare
from spark_jobs.entities.read import read_entities
from spark_jobs.session import start_session
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTION_VARIABLE = "CONTEXTURE_SOURCE_CONNECTION"


def land(spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
    """The landing of a run; it is made once, whatever is tried again after it.

    Args:
        spark: the session that reads a source.
        order: what to land.
        watermark: the newest change that is known.

    Raises:
        ContextureError: the source, the storage or the order is at fault.
    """
    if order.publication.source.kind == "sdmx":
        return _structures(spark, order, watermark)
    if order.retry is not None:
        return write_retry_landing(order, order.retry)
    connection = BrokerConnection.from_json(os.environ[CONNECTION_VARIABLE])
    return (
        land_history(order, connection)
        if order.mode == "backfill"
        else read_entities(spark, order, connection, watermark)
    )


def _structures(spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
    # Runs that read a broker need neither the registries' clients nor the splitter.
    from contexture.sources.sdmx.registry import RegistryConnection
    from spark_jobs.structures.read import read_structures

    return read_structures(spark, order, RegistryConnection.from_json(os.environ[CONNECTION_VARIABLE]), watermark)


def pull_and_prepare(order: StageOrder, watch: Stopwatch) -> Manifest:
    """Runs pull, prepare and the checkpoint; phases whose manifest is there already are not done again."""
    with watch.step("session"):
        spark = start_session(f"stage {order.publication.name}")
    try:
        return _phases(spark, order, watch)
    finally:
        spark.stop()


def _phases(spark: SparkSession, order: StageOrder, watch: Stopwatch) -> Manifest:
    storage = Storage(order.home)
    pointer = State(storage, order.publication.name).pointer()
    with watch.step("pull"):
        landing = land(spark, order, pointer.watermark)
    manifest = _prepared_and_judged(spark, order, landing, watch)
    storage.remove(PublicationFolder(order.publication.name).work(order.run))
    return manifest


def _prepared_and_judged(
    spark: SparkSession, order: StageOrder, landing: LandingManifest, watch: Stopwatch
) -> Manifest:
    if order.publication.source.kind == "sdmx":
        # Runs that read a broker need no splitter.
        from spark_jobs.structures.judge import judge_structures
        from spark_jobs.structures.prepare import prepare_structures

        manifest = prepare_structures(spark, order, landing, watch)
        with watch.step("judge"):
            judge_structures(spark, order, landing, manifest)
        return manifest
    manifest = prepare(spark, order, landing, watch)
    with watch.step("judge"):
        judge_outbox(spark, order, landing, manifest)
    return manifest
