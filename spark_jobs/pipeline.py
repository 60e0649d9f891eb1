"""The phases of a stage on one Spark session: read, prepare, judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from contexture.publications import SdmxPublication
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from spark_jobs.entities.pipeline import EntityPipeline
from spark_jobs.session import start_session
from spark_jobs.shared.context import store_of
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StagePipeline(Protocol):
    """The three phases of a stage for one kind of source.

    Every phase raises a ContextureError when source, storage or order is at fault. A phase whose manifest exists
    already is not done again.
    """

    def read(self, spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
        """Reads the source into the landing folder; `watermark` is the newest known change."""

    def prepare(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
        """Makes the outbox from the landing."""

    def judge(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> None:
        """Judges the outbox by the quality section of the publication, and writes the report."""


def pipeline_of(order: StageOrder) -> StagePipeline:
    """Returns the pipeline for the source of an order."""
    if isinstance(order.publication, SdmxPublication):
        # Runs that read a broker need neither the registries' clients nor the splitter.
        from spark_jobs.structures.pipeline import StructurePipeline

        return StructurePipeline()
    return EntityPipeline()


def run_pipeline(order: StageOrder, watch: Stopwatch) -> Manifest:
    """Starts Spark and runs the phases; returns the manifest of the outbox."""
    with watch.step("session"):
        spark = start_session(f"stage {order.publication.name}")
    try:
        return _run_phases(spark, order, watch)
    finally:
        spark.stop()


def _run_phases(spark: SparkSession, order: StageOrder, watch: Stopwatch) -> Manifest:
    store, pipeline = store_of(order), pipeline_of(order)
    pointer = store.state.pointer()
    with watch.step("pull"):
        landing = pipeline.read(spark, order, pointer.watermark)
    manifest = pipeline.prepare(spark, order, landing, watch)
    with watch.step("judge"):
        pipeline.judge(spark, order, landing, manifest)
    store.run(order.run).work.remove()
    return manifest
