"""The rows that Spark reads from and writes to Parquet files of the home.

Below a local path Spark reads and writes them itself. It could reach an object store only through Hadoop's connectors,
which a plain installation lacks and which need addresses and credentials of their own. There each task reads and writes
its files through `StoredFolder`, as everything else here does.

A unit is a row group of a landing file. Within it the size of bodies limits how many rows are in memory at once.
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
"""The limit of bodies in memory; a larger body is in memory alone."""

_BODY = "body"


class Unit(NamedTuple):
    """A row group of a landing file."""

    file: str
    group: int


def units_of(folder: StoredFolder) -> tuple[Unit, ...]:
    """Returns the units of a folder, in an order that depends only on its files."""
    found = []
    for name in folder.files(".parquet"):
        with folder.translate_read_errors(name), folder.open_table(name) as file:
            found += [Unit(name, group) for group in range(file.metadata.num_row_groups)]
    return tuple(found)


def batches_of(folder: StoredFolder, unit: Unit) -> Iterator[Any]:
    """Yields the rows of a unit as record batches, each small enough for memory."""
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
    # An open reader keeps the page once more, and Arrow's pool keeps what reading needed: several times a large body.
    pa.default_memory_pool().release_unused()
    yield from batches


def _rows_at_once(group: Any) -> int:
    columns = [group.column(number) for number in range(group.num_columns)]
    bytes_of_bodies = sum(column.total_uncompressed_size for column in columns if column.path_in_schema == _BODY)
    return int(max(1, BYTES_AT_ONCE * group.num_rows // max(bytes_of_bodies, 1)))


ROWS_AT_ONCE = 10_000
_COUNT = "rows long"


def write_rows(rows: DataFrame, folder: StoredFolder, schema: pa.Schema) -> None:
    """Writes a frame to Parquet files in a folder that does not exist yet; a repeated task leaves one file.

    Args:
        rows: the frame.
        folder: the target.
        schema: the schema of the files.
    """
    if folder.home.is_local:
        with parquet_microseconds(rows.sparkSession):
            rows.write.option("compression", "zstd").parquet(folder.uri)
        return
    rows.mapInArrow(_build_writer(folder, schema), _COUNT).collect()


def read_rows(spark: SparkSession, folder: StoredFolder, schema: pa.Schema) -> DataFrame:
    """Reads the rows of a folder's Parquet files, with only the columns of `schema`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = from_arrow_schema(schema)
    if folder.home.is_local:
        return spark.read.schema(columns).option("pathGlobFilter", "*.parquet").parquet(folder.uri)
    units = units_of(folder)
    slots = max(1, min(len(units), 4 * spark.sparkContext.defaultParallelism))
    return spark.range(0, len(units), 1, slots).mapInArrow(_build_reader(folder, units, schema), columns)


def _build_writer(folder: StoredFolder, schema: pa.Schema) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(received: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        batches = iter(received)
        first = next(batches, None)
        if first is None:
            return
        context, written = TaskContext.get(), 0
        # The part number is the name, so that a second attempt of a lost task replaces the file of the first.
        name = f"part-{context.partitionId() if context else 0:05d}.parquet"
        with folder.table_writer(name, schema) as file:
            for batch in chain([first], batches):
                file.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
                written += batch.num_rows
        yield pa.record_batch([pa.array([written], pa.int64())], names=["rows"])

    return write


def _build_reader(
    folder: StoredFolder, units: tuple[Unit, ...], schema: pa.Schema
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read_unit(folder, units[number], schema)

    return read


def _read_unit(folder: StoredFolder, unit: Unit, schema: pa.Schema) -> Iterator[Any]:
    with folder.translate_errors(unit.file), folder.open_table(unit.file) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[unit.group], columns=schema.names):
            yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
