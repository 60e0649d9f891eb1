"""The Spark session of a job that spark-submit started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Landing is read in as many pieces as there are row groups; small ones keep all slots busy.
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.files.openCostInBytes": "0",
    # A second copy of a slow task would ask the source for the same once more.
    "spark.speculation": "false",
}
"""What the jobs need, whoever submits them; spark-submit's own settings win where they differ."""


def start_session(name: str) -> SparkSession:
    """The session, with the jobs' settings."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    given = SparkConf()
    for key, value in SETTINGS.items():
        if not given.contains(key):
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"


@contextmanager
def parquet_microseconds(spark: SparkSession) -> Iterator[None]:
    """Within the block Parquet gets times as its own type, with their zone; Spark's default is an old one that other
    readers take for local time in nanoseconds."""
    usual = spark.conf.get(TIMESTAMP_TYPE)
    spark.conf.set(TIMESTAMP_TYPE, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(TIMESTAMP_TYPE, str(usual))
