"""Rows between Spark and Parquet files in the home.

Below a local path Spark reads and writes them itself. An object store it could only reach through Hadoop's connectors,
which a plain installation lacks and which want addresses and credentials of their own: there each task reads and writes
its files through `Storage`, as everything else here does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from spark_jobs.session import parquet_microseconds
from spark_jobs.structures.landing_units import Unit, units_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_AT_ONCE = 10_000
_COUNT = "rows long"


def write_rows(rows: DataFrame, storage: Storage, folder: str, schema: pa.Schema) -> None:
    """Writes a frame to Parquet files in a folder that is not there yet; a task that is done again leaves one file.

    Args:
        rows: what to write.
        storage: the home.
        folder: relative to it.
        schema: of the files.
    """
    if storage.is_local:
        with parquet_microseconds(rows.sparkSession):
            rows.write.option("compression", "zstd").parquet(storage.uri(folder))
        return
    rows.mapInArrow(_writing(storage.root, folder, schema), _COUNT).collect()


def read_rows(spark: SparkSession, storage: Storage, folder: str, schema: pa.Schema) -> DataFrame:
    """The rows of a folder's Parquet files, with the columns of `schema` alone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(schema)
    if storage.is_local:
        return spark.read.schema(columns).option("pathGlobFilter", "*.parquet").parquet(storage.uri(folder))
    units = units_of(storage, folder)
    slots = max(1, min(len(units), 4 * spark.sparkContext.defaultParallelism))
    return spark.range(0, len(units), 1, slots).mapInArrow(_reading(storage.root, folder, units, schema), columns)


def _writing(home: str, folder: str, schema: pa.Schema) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        first = next(batches, None)
        if first is None:
            return
        context, storage, written = TaskContext.get(), Storage(home), 0
        # Named by the part, so that a second try of a lost task takes the place of the first.
        name = f"{folder}/part-{context.partitionId() if context else 0:05d}.parquet"
        with (
            storage.replacing(name) as path,
            pq.ParquetWriter(path, schema, filesystem=storage.filesystem, compression="zstd") as file,
        ):
            for batch in chain([first], batches):
                file.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
                written += batch.num_rows
        yield pa.record_batch([pa.array([written], pa.int64())], names=["rows"])

    return write


def _reading(
    home: str, folder: str, units: tuple[Unit, ...], schema: pa.Schema
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        storage = Storage(home)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _rows_of(storage, folder, units[number], schema)

    return read


def _rows_of(storage: Storage, folder: str, unit: Unit, schema: pa.Schema) -> Iterator[Any]:
    path = storage.path(f"{folder}/{unit.file}")
    with storage.translating(unit.file), pq.ParquetFile(path, filesystem=storage.filesystem) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[unit.group], columns=schema.names):
            yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
