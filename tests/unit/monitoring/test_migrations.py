"""The operational tables are created by numbered migrations, once; those of another version are not changed."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.engine import make_url

from builders.outboxes import NOON
from builders.tables import KINDS, empty_database, execute, rows
from contexture.errors import ConfigurationError, RetriableError
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.monitoring import migrations as package
from contexture.monitoring.database import HEAD, VERSION_TABLE, current_revision, open_engine
from contexture.monitoring.tables import METADATA, VIEWS

pytestmark = pytest.mark.slow

SENT = TransactionRow("vehicles", "outbox1", 0, 0, TransactionStatus.SENT, 10, 1_000, 10, None, None, NOON)
VERSION = f"SELECT version_num FROM {VERSION_TABLE}"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database(request.param, tmp_path)


def opened(url: str) -> RunTables:
    """A store that has read its tables."""
    store = RunTables(url)
    store.transactions()
    return store


def test_the_migrations_create_the_tables_that_the_code_uses(url: str) -> None:
    opened(url).close()
    engine = open_engine(make_url(url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        assert {*inspect(connection).get_view_names()} == {*VIEWS}
    engine.dispose()


def test_the_migrations_end_at_the_version_that_the_code_knows() -> None:
    script = ScriptDirectory(str(Path(package.__file__).parent))
    known = [step.revision for step in script.walk_revisions()]
    # The first revision creates the tables of the code: write them out there before a second one is added.
    assert known == ["0001"]
    assert script.get_heads() == [HEAD]


def test_opening_again_changes_nothing_and_needs_no_alembic(url: str) -> None:
    opened(url).close()
    before = rows(url, VERSION)
    code = (
        "import sys; from contexture.monitoring import RunTables; RunTables(sys.argv[1]).transactions();"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, url], check=False).returncode == 0
    assert rows(url, VERSION) == before


def test_airflows_own_version_in_the_same_database_stays_as_it_is(url: str) -> None:
    execute(
        url,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "INSERT INTO alembic_version VALUES ('a1b2c3')",
    )
    opened(url).close()
    assert rows(url, "SELECT version_num FROM alembic_version") == [("a1b2c3",)]
    assert rows(url, VERSION) == [(HEAD,)]


@pytest.mark.parametrize("version", ["0007", "0099"])
def test_tables_of_another_version_are_not_changed(url: str, version: str) -> None:
    opened(url).close()
    execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '{version}'")
    with pytest.raises(ConfigurationError, match=f"by another version of Contexture: they are of version {version}"):
        RunTables(url).transactions()
    assert rows(url, VERSION) == [(version,)]


def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    # It blocks the last tables: all that were created before are rolled back too.
    execute(url, "CREATE TABLE producer_properties (something INTEGER)")
    with pytest.raises(RetriableError, match="do not respond"):
        RunTables(url).transactions()
    assert current_revision(open_engine(make_url(url))) is None
    execute(url, "DROP TABLE producer_properties")
    assert opened(url).transactions() == []


def test_processes_that_create_the_tables_in_parallel_do_it_once(url: str) -> None:
    code = "import sys; from contexture.monitoring import RunTables; print(len(RunTables(sys.argv[1]).runs()))"
    started = [subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate(timeout=240)[0], process.returncode) for process in started] == [("0\n", 0)] * 4
    assert current_revision(open_engine(make_url(url))) == HEAD


def test_another_process_that_creates_the_tables_is_waited_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/operations.sqlite"
    blocker = sqlite3.connect(tmp_path / "operations.sqlite", isolation_level=None, check_same_thread=False)
    blocker.execute("PRAGMA journal_mode=WAL")
    blocker.execute("BEGIN IMMEDIATE")
    # Longer than the limit for a lock.
    Timer(1.5, blocker.rollback).start()
    assert opened(url).transactions() == []
    blocker.close()
