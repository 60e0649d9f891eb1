"""The Spark session of a job that spark-submit started, and the conversion of its failures to our errors.

What a task raises reaches the driver as text inside a Java exception. Our own errors are found in that text again.
Other errors are recognized by their text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contexture.errors import (
    ConfigurationError,
    ContextureError,
    DefectError,
    RejectedError,
    RetriableError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INTENTS = (RetriableError, ConfigurationError, RejectedError, DefectError)
_OURS = re.compile(r"\b(?:\w+\.)*(\w+Error): (.{1,2000}?)\. Next: ([^\n]{1,1000})", re.DOTALL)
_NO_SPACE = ("No space left on device", "ENOSPC", "Disk quota exceeded")
_OUT_OF_MEMORY = ("OutOfMemoryError", "Java heap space", "MemoryError")


def to_contexture_error(error: BaseException) -> ContextureError:
    """Returns the failure as an error with an intent; one of our own errors that crossed Spark is restored."""
    text = str(error)
    if any(sign in text for sign in _NO_SPACE):
        return RetriableError(
            "the disk is full",
            next_step="make room below CONTEXTURE_HOME and Spark's local folder, then retry; nothing was sent or lost",
        )
    ours = _OURS.search(text)
    if ours:
        return _kind(ours[1])(ours[2], next_step=ours[3].strip())
    if any(sign in text for sign in _OUT_OF_MEMORY):
        return ConfigurationError(
            "Spark ran out of memory", next_step="give the driver more with spark.driver.memory in the Spark connection"
        )
    return DefectError(
        f"the stage job failed unexpectedly: {type(error).__name__}: {_first_line(text)}",
        next_step="read the log of the stage task; if the machine is not the cause, report it with that log",
    )


def _kind(name: str) -> type[ContextureError]:
    """Returns the intent class of the error with this name."""
    return next((kind for kind in _INTENTS if name in _names(kind)), DefectError)


def _names(kind: type[ContextureError]) -> set[str]:
    return {kind.__name__}.union(*(_names(special) for special in kind.__subclasses__()))


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "no message")


CONNECTION_VARIABLE = "CONTEXTURE_SOURCE_CONNECTION"


def source_connection() -> str:
    """Returns the connection to the source as JSON. It is an environment variable, because arguments and files hold no
    secrets."""
    return os.environ[CONNECTION_VARIABLE]


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The landing is read in as many pieces as there are row groups; small pieces keep all slots busy.
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.files.openCostInBytes": "0",
    # A second copy of a slow task would read the same from the source once more.
    "spark.speculation": "false",
}
"""The settings that the jobs need, however they are submitted; the settings of spark-submit take precedence."""


def start_session(name: str) -> SparkSession:
    """Starts the session with the settings of the jobs."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    submitted = SparkConf()
    for key, value in SETTINGS.items():
        if not submitted.contains(key):
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


TIMESTAMP_TYPE = "spark.sql.parquet.outputTimestampType"


@contextmanager
def parquet_microseconds(spark: SparkSession) -> Iterator[None]:
    """Writes times to Parquet in its own type with their zone, within the block.

    Spark's default is an old type that other readers interpret as local time in nanoseconds.
    """
    usual = spark.conf.get(TIMESTAMP_TYPE)
    spark.conf.set(TIMESTAMP_TYPE, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(TIMESTAMP_TYPE, str(usual))
