"""Rows between Spark and Parquet files of the home.

Below a local path Spark reads and writes them itself. An object store it could only reach through Hadoop's connectors,
which a plain installation lacks and which want addresses and credentials of their own: there each task reads and writes
its files through `StoredFolder`, as everything else here does.

A piece is a row group of a landing file. Within it as many rows are in memory at once as their bodies allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from contexture.storage.folder import StoredFolder
from contexture.storage.schemas import LANDING
from spark_jobs.session import parquet_microseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES_AT_ONCE = 16 << 20
"""Of bodies in memory; one that is larger is there alone."""

_BODY = "body"


class Unit(NamedTuple):
    """A row group of a landing file."""

    file: str
    group: int


def units_of(folder: StoredFolder) -> tuple[Unit, ...]:
    """Returns the pieces of a folder, in an order that follows from its files alone."""
    found = []
    for name in folder.files(".parquet"):
        with folder.translate_read_errors(name), folder.open_table(name) as file:
            found += [Unit(name, group) for group in range(file.metadata.num_row_groups)]
    return tuple(found)


def batches_of(folder: StoredFolder, unit: Unit) -> Iterator[Any]:
    """The rows of a piece as record batches, each small enough for memory."""
    with (
        folder.translate_read_errors(unit.file),
        folder.open_table(unit.file, pre_buffer=False) as file,
    ):
        group = file.metadata.row_group(unit.group)
        rows = _rows_at_once(group)
        if group.num_rows > rows:
            yield from file.iter_batches(batch_size=rows, row_groups=[unit.group], columns=LANDING.names)
            return
        batches = file.read_row_group(unit.group, columns=LANDING.names).to_batches()
    # A reader that is open holds the page once more, and Arrow's pool what reading took: a large body some times over.
    pa.default_memory_pool().release_unused()
    yield from batches


def _rows_at_once(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    held = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == _BODY)
    return int(max(1, BYTES_AT_ONCE * group.num_rows // max(held, 1)))


ROWS_AT_ONCE = 10_000
_COUNT = "rows long"


def write_rows(rows: DataFrame, folder: StoredFolder, schema: pa.Schema) -> None:
    """Writes a frame to Parquet files in a folder that is not there yet; a task that is done again leaves one file.

    Args:
        rows: what to write.
        folder: where to.
        schema: of the files.
    """
    if folder.home.is_local:
        with parquet_microseconds(rows.sparkSession):
            rows.write.option("compression", "zstd").parquet(folder.uri)
        return
    rows.mapInArrow(_writing(folder, schema), _COUNT).collect()


def read_rows(spark: SparkSession, folder: StoredFolder, schema: pa.Schema) -> DataFrame:
    """The rows of a folder's Parquet files, with the columns of `schema` alone."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(schema)
    if folder.home.is_local:
        return spark.read.schema(columns).option("pathGlobFilter", "*.parquet").parquet(folder.uri)
    units = units_of(folder)
    slots = max(1, min(len(units), 4 * spark.sparkContext.defaultParallelism))
    return spark.range(0, len(units), 1, slots).mapInArrow(_reading(folder, units, schema), columns)


def _writing(folder: StoredFolder, schema: pa.Schema) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(given: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        batches = iter(given)
        first = next(batches, None)
        if first is None:
            return
        context, written = TaskContext.get(), 0
        # Named by the part, so that a second try of a lost task takes the place of the first.
        name = f"part-{context.partitionId() if context else 0:05d}.parquet"
        with folder.table_writer(name, schema) as file:
            for batch in chain([first], batches):
                file.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
                written += batch.num_rows
        yield pa.record_batch([pa.array([written], pa.int64())], names=["rows"])

    return write


def _reading(
    folder: StoredFolder, units: tuple[Unit, ...], schema: pa.Schema
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _rows_of(folder, units[number], schema)

    return read


def _rows_of(folder: StoredFolder, unit: Unit, schema: pa.Schema) -> Iterator[Any]:
    with folder.translate_errors(unit.file), folder.open_table(unit.file) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[unit.group], columns=schema.names):
            yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
