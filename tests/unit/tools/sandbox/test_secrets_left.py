"""The search for secrets that the tests of whole runs use finds them, also where they are in no piece of a file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from e2e.secrets_left import SecretWatch, filled_tables, forms, places_with

SECRET = "tok3n-that-no-file-may-hold"
WANTED = forms([SECRET])


def test_a_folder_without_the_secret_is_clean(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("all is well")
    pq.write_table(pa.table({"value": [b"car1"], "number": [1]}), tmp_path / "part.parquet")
    assert places_with(WANTED, tmp_path) == []


def test_files_columns_and_tables_that_hold_it_are_named(tmp_path: Path) -> None:
    (tmp_path / "basic.txt").write_bytes(b"Basic " + b64encode(SECRET.encode()))
    topics = pa.array([SECRET] * 3).dictionary_encode()
    table = pa.table({"value": [b"x" * 9 + SECRET.encode(), b"", None], "topic": topics, "clean": ["a", "b", "c"]})
    pq.write_table(table, tmp_path / "part.parquet", compression="zstd")
    with sqlite3.connect(tmp_path / "airflow.db") as connection:
        connection.execute("CREATE TABLE xcom (value TEXT)")
        connection.execute("CREATE TABLE empty (value TEXT)")
        # Long enough to be spread over pages, none of which holds it as a whole.
        connection.executemany("INSERT INTO xcom VALUES (?)", [("x" * (4000 + each) + SECRET,) for each in range(200)])
    found = {place.removeprefix(f"{tmp_path}/") for place in places_with(WANTED, tmp_path)}
    assert {"basic.txt", "part.parquet: value", "part.parquet: topic", "airflow.db: xcom"} <= found
    assert not [place for place in found if "clean" in place or "empty" in place]
    assert filled_tables(tmp_path / "airflow.db") == {"xcom"}


def test_the_watch_sees_command_lines_and_files_of_a_moment(tmp_path: Path) -> None:
    watch = SecretWatch(os.getpid(), tmp_path, WANTED, every_seconds=0.1)
    watch.start()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)", SECRET]) as process:
        (tmp_path / "properties").write_text(f"token={SECRET}")
        deadline = time.monotonic() + 90
        while len(watch.found) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    watch.end()
    assert {Path(each).name for each in watch.found if "sleep" not in each} == {"properties"}
    assert [each for each in watch.found if "time.sleep" in each]
