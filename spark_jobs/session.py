"""The Spark session of a job that spark-submit started, and its failures as errors of ours.

What a task raises reaches the driver as text inside a Java exception. Our own errors are found in that text again; the
rest is told by what it says.
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
    """The failure as an error with an intent; an error of ours that crossed Spark comes back as what it was."""
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
        next_step="read the log of the stage task; if it is not the machine's fault, report it with that log",
    )


def _kind(name: str) -> type[ContextureError]:
    """The class of the intent that an error of ours with this name has."""
    return next((kind for kind in _INTENTS if name in _names(kind)), DefectError)


def _names(kind: type[ContextureError]) -> set[str]:
    return {kind.__name__}.union(*(_names(special) for special in kind.__subclasses__()))


def _first_line(text: str) -> str:
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "no message")


CONNECTION_VARIABLE = "CONTEXTURE_SOURCE_CONNECTION"


def source_connection() -> str:
    """The connection to the source, as JSON; it comes by the environment, for no argument or file may hold a secret."""
    return os.environ[CONNECTION_VARIABLE]


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
"""What the jobs need, in every way of submitting them; spark-submit's own settings win where they differ."""


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
