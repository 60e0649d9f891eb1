"""The files of landing that tasks write."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from contexture.storage.schemas import LANDING
from spark_jobs.structures.landing import LandingRow, landing_file

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def row(number: int, size: int) -> LandingRow:
    return {
        "ordinal": number,
        "operation": "upsert",
        "scope": "X",
        "path": "",
        "body": b"x" * size,
        "received_at": NOON,
    }


def test_row_groups_are_bounded_by_bytes(tmp_path: Path) -> None:
    with landing_file(StoredFolder(Home(str(tmp_path)), "landing"), "part.parquet") as file:
        for number, size in enumerate([9 << 20, 9 << 20, 40 << 20, 1, 2]):
            file.add(row(number, size))

    written = pq.ParquetFile(tmp_path / "landing/part.parquet")
    groups = [written.metadata.row_group(group).num_rows for group in range(written.num_row_groups)]
    assert groups == [1, 1, 1, 2]
    assert file.rows == 5
    bodies = written.read(["body"])["body"].to_pylist()
    assert [len(body) for body in bodies] == [9 << 20, 9 << 20, 40 << 20, 1, 2]
    assert set(bodies[2]) == {ord("x")}


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    with landing_file(StoredFolder(Home(str(tmp_path)), ""), "part.parquet") as file:
        file.add(row(1, 10))

    assert file.sha256 == hashlib.sha256((tmp_path / "part.parquet").read_bytes()).hexdigest()


def test_a_file_without_rows_has_the_columns_of_landing(tmp_path: Path) -> None:
    with landing_file(StoredFolder(Home(str(tmp_path)), ""), "part.parquet"):
        pass

    assert pq.read_schema(tmp_path / "part.parquet") == LANDING


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), landing_file(StoredFolder(Home(str(tmp_path)), ""), "part.parquet") as file:
        file.add({}["row"])

    assert list(tmp_path.iterdir()) == []
