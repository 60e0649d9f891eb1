"""A job that does what every stage does, so that its Java classes can be recorded: `record_classes.py FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from spark_jobs.session import parquet_microseconds, start_session

if TYPE_CHECKING:
    import pyarrow as pa


def touch(folder: str) -> None:
    """Builds rows in Python, writes them, reads them, passes them through Python, and collects them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from contexture.storage.schemas import LANDING

    spark = start_session("recording")
    schema = from_arrow_schema(LANDING)

    with parquet_microseconds(spark):
        rows = spark.range(0, 2, 1, 2).mapInArrow(_one_row, schema)
        rows.write.option("compression", "zstd").parquet(f"{folder}/rows")
    read = spark.read.schema(schema).option("pathGlobFilter", "*.parquet").parquet(f"{folder}/rows")
    read.mapInArrow(lambda batches: batches, schema).collect()
    spark.stop()


def _one_row(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from contexture.storage.schemas import LANDING

    for _ in batches:
        columns = [_one(field.type) for field in LANDING]
        yield pa.record_batch(columns, schema=LANDING)


def _one(kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return pa.array([0], kind)
    if pa.types.is_timestamp(kind):
        return pa.array([0], pa.int64()).cast(kind)
    return pa.array([b"{}" if pa.types.is_binary(kind) else "{}"], kind)


if __name__ == "__main__":
    touch(sys.argv[1])
