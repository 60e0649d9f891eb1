"""The stage pipeline of a publication that reads a context broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.sources.http.connection import BrokerConnection
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.quarantine_retry import write_retry_landing
from spark_jobs.entities.history import land_history
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.prepare import prepare
from spark_jobs.entities.read import read_entities
from spark_jobs.session import source_connection
from spark_jobs.shared.context import store_of
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class EntityPipeline:
    """The pipeline of entities: those of the broker, of its history, or quarantined ones that are tried again."""

    def read(self, spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
        """Reads the source, its history, or the quarantine into the landing folder."""
        if order.retry is not None:
            return write_retry_landing(store_of(order), order, order.retry)
        connection = BrokerConnection.from_json(source_connection())
        if order.mode == "backfill":
            return land_history(order, connection)
        return read_entities(spark, order, connection, watermark)

    def prepare(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
        """Prepares the outbox of the run."""
        return prepare(spark, order, landing, watch)

    def judge(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> None:
        """Judges the outbox and writes its report."""
        judge_outbox(spark, order, landing, manifest)
