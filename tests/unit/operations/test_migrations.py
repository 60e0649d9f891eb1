"""The operational tables are made and upgraded by numbered steps, and those of former versions lose nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Timer

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.engine import make_url

from builders.outboxes import NOON
from builders.tables import KINDS, empty_database, execute, former_tables, rows
from contexture.errors import ConfigurationError, RetriableError
from contexture.operations import ProducerStore, TransactionRow, TransactionStatus
from contexture.operations import migrations as package
from contexture.operations.database import HEAD, VERSION_TABLE, current_revision, open_engine
from contexture.operations.tables import METADATA, VIEWS
from contexture.operations.totals import PutAside

SENT = TransactionRow("vehicles", "outbox1", 0, 0, TransactionStatus.SENT, 10, 1_000, 10, None, None, NOON)
VERSION = f"SELECT version_num FROM {VERSION_TABLE}"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database(request.param, tmp_path)


def opened(url: str) -> ProducerStore:
    """A store that has looked into its tables."""
    store = ProducerStore(url)
    store.transactions()
    return store


def columns(url: str) -> dict[str, set[str]]:
    """Every table with its columns, types and indexes."""
    engine = open_engine(make_url(url))
    found = inspect(engine)
    described = {
        name: {f"{each['name']} {each['type']} {each['nullable']}" for each in found.get_columns(name)}
        | {f"index {each['name']} {each['column_names']}" for each in found.get_indexes(name)}
        for name in [*METADATA.tables, *VIEWS]
    }
    engine.dispose()
    return described


def test_the_steps_lead_to_the_tables_that_the_code_uses(url: str) -> None:
    opened(url).close()
    engine = open_engine(make_url(url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        assert {*inspect(connection).get_view_names()} == {*VIEWS}
    engine.dispose()


def test_the_steps_are_one_line_up_to_the_version_that_the_code_knows() -> None:
    script = ScriptDirectory(str(Path(package.__file__).parent))
    known = [step.revision for step in script.walk_revisions()]
    assert known == ["0007", "0006", "0005", "0004", "0003", "0002", "0001"]
    assert script.get_heads() == [HEAD]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_tables_of_a_former_version_become_those_of_today_with_what_they_hold(url: str, version: int) -> None:
    former_tables(url, version)
    store = ProducerStore(url)
    refused, sent = store.transactions()
    assert sent == SENT
    assert (refused.source_transaction, refused.message, refused.source_deletions) == (4711, "no broker", version >= 2)
    assert (refused.dead_letters, sent.dead_letters, store.put_aside("vehicles")) == (0, 0, PutAside())
    assert [run.run_id for run in store.runs("vehicles")] == ["scheduled__1"]
    assert [row.next_at for row in store.attempts("vehicles")] == [NOON + timedelta(seconds=5)]
    assert [row.who for row in store.interventions("vehicles")] == ["anna"] * (version >= 4)
    assert [event.publication for event in store.events_after(0, limit=9)] == ["vehicles"] * (version >= 5)
    assert rows(url, "SELECT told FROM verifications") == [("all equal",)] * (version >= 3)
    store.close()
    assert rows(url, VERSION) == [(HEAD,)]
    assert rows(url, "SELECT property FROM kafa_producer_config_properties") == [("batches.batch_size=1",)] * (
        version >= 6
    )
    assert rows(url, "SELECT tx_id, tx_status FROM kafka_producer_tx ORDER BY 1") == [("4711", 3), ("outbox1/0/0", 1)]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_tables_that_were_taken_over_are_like_new_ones(url: str, version: int, tmp_path: Path) -> None:
    former_tables(url, version)
    opened(url).close()
    taken_over = columns(url)
    new = empty_database(make_url(url).get_backend_name(), tmp_path / "new")
    opened(new).close()
    assert taken_over == columns(new)


def test_a_contexture_of_before_sees_that_it_is_too_old(url: str) -> None:
    former_tables(url, 3)
    opened(url).close()
    assert rows(url, "SELECT max(version) FROM schema_version") == [(6,)]


def test_opening_again_changes_nothing_and_needs_no_alembic(url: str) -> None:
    opened(url).close()
    before = rows(url, VERSION)
    code = (
        "import sys; from contexture.operations import ProducerStore; ProducerStore(sys.argv[1]).transactions();"
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


def test_tables_of_a_later_version_are_left_alone(url: str) -> None:
    opened(url).close()
    execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    with pytest.raises(ConfigurationError, match="written by a later Contexture: they are of version 0099, and this"):
        ProducerStore(url).transactions()
    assert rows(url, VERSION) == [("0099",)]


def test_a_step_that_fails_leaves_the_tables_as_they_were(url: str) -> None:
    former_tables(url, 2)
    # In the way of the last step: all before it are taken back with it.
    execute(url, "CREATE TABLE producer_properties (something INTEGER)")
    with pytest.raises(RetriableError, match="do not answer"):
        ProducerStore(url).transactions()
    assert rows(url, "SELECT max(version) FROM schema_version") == [(2,)]
    execute(url, "DROP TABLE producer_properties")
    assert len(opened(url).transactions()) == 2


def test_processes_that_upgrade_at_once_do_it_once(url: str) -> None:
    former_tables(url, 1)
    code = "import sys; from contexture.operations import ProducerStore; print(len(ProducerStore(sys.argv[1]).runs()))"
    started = [subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate(timeout=240)[0], process.returncode) for process in started] == [("1\n", 0)] * 4
    assert current_revision(open_engine(make_url(url))) == HEAD


def test_an_upgrade_of_another_process_is_waited_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/operations.sqlite"
    former_tables(url, 1)
    blocker = sqlite3.connect(tmp_path / "operations.sqlite", isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    # Longer than a lock is waited for.
    Timer(1.5, blocker.rollback).start()
    assert len(opened(url).transactions()) == 2
    blocker.close()
