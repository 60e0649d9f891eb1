"""Rows that go to the home through Arrow, because Spark could not reach it, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from spark_jobs.shared.parquet_rows import read_rows, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("body", pa.binary()),
        pa.field("received_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
AT = datetime(2026, 11, 22, 3, 4, 5, 678901, tzinfo=UTC)
FOLDER = "city/landing/one"


def one_row_each(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        rows = [{"ordinal": number, "body": b"%d" % number, "received_at": AT} for number in numbers]
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def rows(spark: SparkSession, count: int, parts: int) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.range(0, count, 1, parts).mapInArrow(one_row_each, from_arrow_schema(SCHEMA))


@pytest.fixture(params=["path", "uri"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """The same folder, once as Spark reaches it and once as an address that is left to Arrow."""
    return Home(str(tmp_path) if request.param == "path" else f"file://{tmp_path}")


def test_every_row_comes_back_as_it_was(spark: SparkSession, storage: Home) -> None:
    write_rows(rows(spark, 25, 3), StoredFolder(storage, FOLDER), SCHEMA)

    found = sorted(tuple(row) for row in read_rows(spark, StoredFolder(storage, FOLDER), SCHEMA).collect())

    assert [(number, bytes(body)) for number, body, _ in found] == [(each, b"%d" % each) for each in range(25)]
    assert {moment.replace(tzinfo=UTC) for _, _, moment in found} == {AT}


def test_files_have_the_times_that_every_reader_understands(spark: SparkSession, storage: Home) -> None:
    write_rows(rows(spark, 4, 2), StoredFolder(storage, FOLDER), SCHEMA)

    names = storage.files(FOLDER, ".parquet")

    kinds = {
        pq.read_schema(storage.path(f"{FOLDER}/{name}"), filesystem=storage.filesystem).field("received_at").type
        for name in names
    }
    assert (len(names), kinds) == (2, {pa.timestamp("us", tz="UTC")})


def test_a_task_that_is_done_again_leaves_one_file(spark: SparkSession, tmp_path: Path) -> None:
    storage = Home(f"file://{tmp_path}")
    write_rows(rows(spark, 6, 2), StoredFolder(storage, FOLDER), SCHEMA)

    write_rows(rows(spark, 6, 2), StoredFolder(storage, FOLDER), SCHEMA)

    assert storage.files(FOLDER) == ["part-00000.parquet", "part-00001.parquet"]
    assert read_rows(spark, StoredFolder(storage, FOLDER), SCHEMA).count() == 6


def test_no_rows_are_no_rows(spark: SparkSession, storage: Home) -> None:
    write_rows(rows(spark, 0, 1), StoredFolder(storage, FOLDER), SCHEMA)

    assert read_rows(spark, StoredFolder(storage, FOLDER), SCHEMA).collect() == []


def test_only_the_named_columns_are_read(spark: SparkSession, storage: Home) -> None:
    write_rows(rows(spark, 3, 1), StoredFolder(storage, FOLDER), SCHEMA)

    found = read_rows(spark, StoredFolder(storage, FOLDER), pa.schema([SCHEMA.field("ordinal")]))

    assert found.columns == ["ordinal"]
