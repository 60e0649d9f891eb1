"""The two phases of a stage on one Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.storage.home import Storage
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State
from spark_jobs.judgement import judge_outbox
from spark_jobs.landing import land
from spark_jobs.preparation.phase import Stopwatch, prepare
from spark_jobs.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        from spark_jobs.structures.judgement import judge_structures
        from spark_jobs.structures.phase import prepare_structures

        manifest = prepare_structures(spark, order, landing, watch)
        with watch.step("judge"):
            judge_structures(spark, order, landing, manifest)
        return manifest
    manifest = prepare(spark, order, landing, watch)
    with watch.step("judge"):
        judge_outbox(spark, order, landing, manifest)
    return manifest
