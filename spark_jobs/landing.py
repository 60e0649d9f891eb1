"""Where the landing of a run comes from: its source, the history of that, or quarantined events tried again.

A source is a context broker or a structure registry.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from contexture.sources.http.connection import BrokerConnection
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.quarantine import land_quarantined
from spark_jobs.history import land_history
from spark_jobs.pull import pull

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
        return land_quarantined(order, order.retry)
    connection = BrokerConnection.from_json(os.environ[CONNECTION_VARIABLE])
    return land_history(order, connection) if order.mode == "backfill" else pull(spark, order, connection, watermark)


def _structures(spark: SparkSession, order: StageOrder, watermark: str | None) -> LandingManifest:
    # Runs that read a broker need neither the registries' clients nor the splitter.
    from contexture.sources.sdmx.registry import RegistryConnection
    from spark_jobs.structures.pull import pull_structures

    return pull_structures(spark, order, RegistryConnection.from_json(os.environ[CONNECTION_VARIABLE]), watermark)
