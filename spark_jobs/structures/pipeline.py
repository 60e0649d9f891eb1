"""The stage of a publication that reads a structure registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from spark_jobs.session import source_connection
from spark_jobs.shared.outbox import Stopwatch
from spark_jobs.structures.judge import judge_structures
from spark_jobs.structures.prepare import prepare_structures
from spark_jobs.structures.read import read_structures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StructurePipeline:
    """The pipeline of structures, read from the registry's log or as a whole."""

    def read(self, spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
        """Reads the landing of the run."""
        return read_structures(spark, order, RegistryConnection.from_json(source_connection()), watermark)

    def prepare(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
        """Prepares the outbox of the run."""
        return prepare_structures(spark, order, landing, watch)

    def judge(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> None:
        """Writes the verdict on the outbox, and its report."""
        judge_structures(spark, order, landing, manifest)
