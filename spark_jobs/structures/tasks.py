"""The questions of a pull spread over Spark's tasks: small rows come back, bodies stay in files that tasks write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from contexture.errors import ContextureError, from_dict
from spark_jobs.failures import intended
from spark_jobs.structures.questions import Share, Told
from spark_jobs.structures.reader import Reading, read_share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOLD = "what string, urn string, number bigint, detail string"


def read_in_tasks(spark: SparkSession, reading: Reading, shares: Sequence[Share]) -> list[Told]:
    """What all tasks tell, one task for each share; so there are as many requests at once as shares.

    Raises:
        ContextureError: what a task raised.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _told(reading, shares[number])

    numbers = spark.range(0, len(shares), 1, len(shares))
    try:
        rows = numbers.mapInArrow(read, TOLD).collect()
    except ContextureError:
        raise
    except Exception as error:
        # Spark wraps what a task raised into its own text, several layers deep; only our sentence is of use.
        raise intended(error) from None
    return [Told(row["what"], row["urn"], row["number"], row["detail"]) for row in rows]


def _told(reading: Reading, share: Share) -> pa.RecordBatch:
    try:
        told = read_share(reading, share)
    except ContextureError as error:
        # The name of one of the classes in `contexture.errors` tells the driver the intent.
        raise from_dict(error.as_dict()) from None
    return pa.RecordBatch.from_pydict(
        {
            "what": pa.array([each.what for each in told], pa.string()),
            "urn": pa.array([each.urn for each in told], pa.string()),
            "number": pa.array([each.number for each in told], pa.int64()),
            "detail": pa.array([each.detail for each in told], pa.string()),
        }
    )
