"""The operational tables: what is written is read back, by any number of writers, under both sets of names."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url

from builders.attempts import failed_send
from builders.outboxes import NOON, publication
from builders.tables import KINDS, empty_database, rows
from contexture.errors import ConfigurationError, RejectedError, RetriableError
from contexture.kafka import KafkaConfigurationError
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus, database
from contexture.monitoring.database import database_url, open_engine
from contexture.monitoring.history import DeadLetterTotals, TransactionFilter
from contexture.monitoring.store import properties_of

PASSWORD = "s3cret-of-the-database"


def transaction(
    number: int = 0, status: TransactionStatus = TransactionStatus.SENT, **changes: object
) -> TransactionRow:
    given: dict[str, object] = {
        "publication": "vehicles",
        "outbox": "outbox1",
        "shard": 0,
        "number": number,
        "status": status,
        "records": 10,
        "bytes": 1_000,
        "position": 10 * (number + 1),
        "source_transaction": None,
        "message": None,
        "updated_at": NOON + timedelta(seconds=number),
    }
    return TransactionRow(**(given | changes))  # type: ignore[arg-type]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database(request.param, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[RunTables]:
    opened = RunTables(url)
    yield opened
    opened.close()


def test_a_transaction_is_one_row_in_every_state(store: RunTables) -> None:
    store.set_transaction(transaction(status=TransactionStatus.PENDING, records=0, bytes=0))
    store.set_transaction(transaction(status=TransactionStatus.BROKER_ERROR, message="no broker"))
    assert store.transactions() == [transaction(status=TransactionStatus.BROKER_ERROR, message="no broker")]
    store.set_transaction(transaction())
    assert store.transactions() == [transaction()]


def test_transactions_are_read_by_page_and_by_status(store: RunTables) -> None:
    for number in range(5):
        store.set_transaction(transaction(number))
    store.set_transaction(transaction(5, TransactionStatus.PENDING))
    store.set_transaction(transaction(0, publication="bikes"))
    sent = TransactionFilter(status=TransactionStatus.SENT)
    assert [row.number for row in store.transactions("vehicles", limit=2)] == [5, 4]
    assert [row.number for row in store.transactions("vehicles", which=sent, limit=2, offset=1)] == [3, 2]


def test_the_sums_of_a_publication(store: RunTables) -> None:
    for number in range(3):
        store.set_transaction(transaction(number))
    store.set_transaction(transaction(3, TransactionStatus.LOCAL_FAILURE))
    sums = store.sums("vehicles")
    assert sums.by_status == {TransactionStatus.SENT: 3, TransactionStatus.LOCAL_FAILURE: 1}
    assert (sums.records, sums.bytes, sums.last_sent) == (30, 3_000, transaction(2))
    assert store.sums("bikes").last_sent is None


def test_sums_of_several_publications_are_read_in_one_call(store: RunTables) -> None:
    for name, records in (("vehicles", 10), ("bikes", 3), ("trams", 5)):
        store.set_transaction(transaction(publication=name, records=records))
    store.set_transaction(transaction(1, publication="bikes", records=4), dead_letters=2)
    early, later = transaction().updated_at, transaction(1).updated_at
    found = store.sent_since(early, ["bikes", "vehicles", "unknown"])
    assert {name: (volume.transactions, volume.records) for name, volume in found.items()} == {
        "vehicles": (1, 10),
        "bikes": (2, 7),
    }
    assert {name: volume.records for name, volume in store.sent_since(later, ["bikes", "vehicles"]).items()} == {
        "bikes": 4
    }
    assert store.dead_letters_of(["bikes", "vehicles"]) == {"bikes": DeadLetterTotals(2, 1, later, outstanding=True)}
    assert store.last_verifications(["bikes"]) == store.dead_letters_of([]) == {}


def test_a_run_from_its_plan_to_its_end(store: RunTables) -> None:
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="full", sequence=7)
    (running,) = store.runs("vehicles")
    assert (running.state, running.mode, running.sequence, running.ended_at) == ("running", "full", 7, None)
    store.set_run_failed("vehicles", "scheduled__1", task="publish", message="no broker")
    (failed,) = store.runs()
    assert (failed.run, failed.state, failed.failed_task, failed.message) == ("run1", "failed", "publish", "no broker")
    store.set_run_succeeded("vehicles", "run1", outbox="outbox1")
    (ended,) = store.runs()
    assert (ended.state, ended.outbox, ended.failed_task, ended.message) == ("succeeded", "outbox1", None, None)


def test_the_outbox_of_a_run_is_known_when_the_run_fails_too(store: RunTables) -> None:
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="full", sequence=7)
    store.set_run_outbox("vehicles", "run1", outbox="outbox1")
    store.set_run_failed("vehicles", "scheduled__1", task="quality_gate", message="rejected")
    (failed,) = store.runs("vehicles")
    assert (failed.state, failed.outbox) == ("failed", "outbox1")


def test_the_latest_run_is_never_one_of_a_backfill(store: RunTables) -> None:
    def began(name: str, run_id: str, mode: str) -> None:
        store.insert_run(name, run_id, run_id=run_id, mode=mode, sequence=1)
        time.sleep(0.002)

    began("vehicles", "scheduled__1", "changes")
    began("vehicles", "scheduled__2", "changes")
    began("vehicles", "backfill__3", "backfill")
    store.set_run_failed("vehicles", "backfill__4", task="settle", message="no broker")
    began("bikes", "backfill__5", "backfill")
    began("buses", "manual__6", "full")
    assert {name: run.run_id for name, run in store.latest_runs().items()} == {
        "vehicles": "scheduled__2",
        "buses": "manual__6",
    }


def test_a_run_that_fails_before_it_is_planned_is_stored(store: RunTables) -> None:
    store.set_run_failed("vehicles", "manual__1", task="settle", message="no broker")
    (run,) = store.runs("vehicles")
    assert (run.run_id, run.state, run.failed_task, run.mode) == ("manual__1", "failed", "settle", None)


def test_runs_are_found_by_any_number_of_names(store: RunTables) -> None:
    for name, run in (("vehicles", "run1"), ("vehicles", "run2"), ("bikes", "run1")):
        store.insert_run(name, run, run_id=f"scheduled__{run}", mode="full", sequence=7)
    names = {"run1", *(f"other{number}" for number in range(2_500))}
    assert [(row.publication, row.run) for row in store.runs_named("vehicles", names)] == [("vehicles", "run1")]
    assert store.runs_named("vehicles", ()) == []


def test_queries_within_a_block_share_a_connection(store: RunTables) -> None:
    store.set_transaction(transaction())
    begun: list[Connection] = []
    event.listen(store._engine, "begin", begun.append)

    with store.one_connection():
        assert [store.sums("vehicles").records, len(store.transactions()), store.run_count("vehicles")] == [10, 1, 0]
    assert len(begun) == 1

    with pytest.raises(ZeroDivisionError), store.one_connection():
        raise ZeroDivisionError
    assert len(store.transactions()) == 1
    assert len(begun) == 2


def test_failed_runs_are_found_by_the_time_of_their_start(store: RunTables) -> None:
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="full", sequence=7)
    for name in ("vehicles", "bikes"):
        store.set_run_failed(name, "manual__1", task="settle", message="no broker")
    [row] = store.failed_runs("vehicles")
    assert (row.run_id, row.failed_task) == ("manual__1", "settle")
    assert store.failed_runs("vehicles", since=row.started_at, until=row.started_at + timedelta(seconds=1)) == [row]
    assert store.failed_runs("vehicles", until=row.started_at) == []
    assert store.failed_runs("vehicles", since=row.started_at + timedelta(seconds=1)) == []


def test_each_failed_send_is_stored(store: RunTables) -> None:
    store.set_attempt("vehicles", failed_send("outbox1", attempt=1))
    store.set_attempt("vehicles", failed_send("outbox1", attempt=2, state="exhausted", next_at=None, failed_at=NOON))
    assert sorted((row.attempt, row.allowed, row.state, row.next_at) for row in store.attempts("vehicles")) == [
        (1, 11, "waiting", NOON + timedelta(seconds=5)),
        (2, 11, "exhausted", None),
    ]


def test_old_rows_are_deleted(store: RunTables) -> None:
    store.set_transaction(transaction(0))
    store.set_transaction(transaction(1, updated_at=datetime.now(UTC)))
    store.set_transaction(transaction(0, publication="bikes"))
    assert store.delete_before("vehicles", before=NOON + timedelta(days=1)) == 1
    assert [row.number for row in store.transactions("vehicles")] == [1]
    assert len(store.transactions("bikes")) == 1


def test_the_settings_of_a_publication_are_those_of_the_last_run(store: RunTables, url: str) -> None:
    three = ["batches.batch_size=1", "message.format=ngsiv2", "message.key=identity"]
    options = {"bootstrap.servers": "a:9092", "linger.ms": "5", "sasl.password": "***"}
    store.set_producer_settings("vehicles", three, connection="kafka_default", settings=options)
    store.set_producer_settings("bikes", three[:1], connection="kafka_other", settings={"bootstrap.servers": "b:9092"})
    changed = {"bootstrap.servers": "a:9092,c:9092"}
    store.set_producer_settings("vehicles", three[1:], connection="kafka_default", settings=changed)
    assert rows(url, "SELECT id, line_number, property FROM kafa_producer_config_properties ORDER BY 1, 2") == [
        ("bikes", 0, "batches.batch_size=1"),
        ("vehicles", 0, "message.format=ngsiv2"),
        ("vehicles", 1, "message.key=identity"),
    ]
    assert rows(url, "SELECT conn_key, conn_value, connection FROM kafka_connection_settings ORDER BY 3") == [
        ("bootstrap.servers", "a:9092,c:9092", "kafka_default"),
        ("bootstrap.servers", "b:9092", "kafka_other"),
    ]


def test_the_properties_of_a_publication_are_its_resolved_keys() -> None:
    lines = properties_of(publication())
    assert {"name=vehicles", "topics.naming=cygnus", "batches.batch_size=1", "publish.connection=kafka_default"} <= {
        *lines
    }


def test_users_of_a_registry_find_the_names_that_they_know(store: RunTables, url: str) -> None:
    store.set_publication("codelists", topics="fixed FOO,BAR", format_name="sdmx", connection="kafka_default")
    store.set_transaction(transaction(publication="codelists", source_transaction=4711))
    store.set_transaction(transaction(1, TransactionStatus.PENDING))
    with open_engine(make_url(url)).connect() as connection:
        configured = connection.execute(text("SELECT id, topic, format FROM kafa_producer_config")).all()
        sent = connection.execute(text("SELECT * FROM kafa_producer_tx ORDER BY tx_id")).mappings().all()
    assert [tuple(row) for row in configured] == [("codelists", "fixed FOO,BAR", "sdmx")]
    assert [dict(row) for row in sent] == [
        {
            "tx_id": "4711",
            "producer_id": "codelists",
            "tx_status": 1,
            "tx_last_updated": 1_772_366_400_000,
            "tx_size": 1_000,
            "tx_messages": 10,
        },
        {
            "tx_id": "outbox1/0/1",
            "producer_id": "vehicles",
            "tx_status": 0,
            "tx_last_updated": 1_772_366_401_000,
            "tx_size": 1_000,
            "tx_messages": 10,
        },
    ]


def test_the_table_of_transactions_has_the_same_name_as_at_a_registry(store: RunTables, url: str) -> None:
    store.set_transaction(transaction(publication="codelists", source_transaction=4711, source_deletions=True))
    with open_engine(make_url(url)).connect() as connection:
        assert connection.execute(text("SELECT tx_id, tx_status FROM kafka_producer_tx")).all() == [("4711", 1)]


WRITER = textwrap.dedent(
    """
    import sys
    sys.path[:0] = {path!r}
    from test_store import transaction
    from contexture.monitoring import RunTables
    store = RunTables({url!r})
    for number in range(40):
        store.set_transaction(transaction(number, shard=int(sys.argv[1])))
    """
)


@pytest.mark.slow
def test_processes_that_write_in_parallel_create_the_tables_once_and_lose_nothing(store: RunTables, url: str) -> None:
    path = [str(Path(__file__).parent), *sys.path]
    script = WRITER.format(path=path, url=url)
    writers = [subprocess.Popen([sys.executable, "-c", script, str(shard)]) for shard in range(4)]
    assert [writer.wait(240) for writer in writers] == [0, 0, 0, 0]
    assert store.sums("vehicles").by_status == {TransactionStatus.SENT: 160}


def test_sqlite_writes_while_others_read(tmp_path: Path) -> None:
    RunTables(f"sqlite:///{tmp_path}/operations.sqlite").set_transaction(transaction())
    with sqlite3.connect(tmp_path / "operations.sqlite") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_limit_for_a_lock_is_five_seconds(tmp_path: Path) -> None:
    with open_engine(make_url(f"sqlite:///{tmp_path}/operations.sqlite")).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 5_000


def test_a_locked_database_fails_after_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.2)
    store = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    store.set_transaction(transaction())
    blocker = sqlite3.connect(tmp_path / "operations.sqlite", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(RetriableError, match=r"do not respond \(OperationalError\)"):
        store.set_transaction(transaction(1))
    assert len(store.transactions()) == 1, "readers are not blocked"
    blocker.close()


def test_the_default_is_a_file_below_a_local_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    assert str(database_url("/data/home")) == "sqlite:////data/home/operations.sqlite"
    assert database_url("s3://bucket/home") is None
    assert RunTables.of_home("s3://bucket/home") is None


def test_the_password_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTURE_DATABASE", f"postgresql+psycopg2://ops:{PASSWORD}@127.0.0.1:9/contexture")
    store = RunTables.of_home("/data/home")
    assert store is not None
    with pytest.raises((RetriableError, ConfigurationError)) as failure:
        store.set_transaction(transaction())
    assert PASSWORD not in f"{failure.value} {failure.value.context} {store.address} {store!r}"
    monkeypatch.setenv("CONTEXTURE_DATABASE", f"ops:{PASSWORD}")
    with pytest.raises(ConfigurationError) as wrong:
        RunTables.of_home("/data/home")
    assert PASSWORD not in str(wrong.value)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RejectedError("too large", next_step="-", status=2), TransactionStatus.LOCAL_FAILURE),
        (KafkaConfigurationError("not authorised", next_step="-", status=3), TransactionStatus.BROKER_ERROR),
        (RetriableError("no broker", next_step="-"), TransactionStatus.BROKER_ERROR),
        (RejectedError("refused", next_step="-"), TransactionStatus.LOCAL_FAILURE),
        (ValueError("?"), TransactionStatus.UNEXPECTED),
    ],
)
def test_the_status_of_a_failure(error: Exception, status: TransactionStatus) -> None:
    assert TransactionStatus.of(error) is status


def test_the_numbers_are_those_of_the_registry() -> None:
    assert [(status.name, status.value) for status in TransactionStatus] == [
        ("PENDING", 0),
        ("SENT", 1),
        ("LOCAL_FAILURE", 2),
        ("BROKER_ERROR", 3),
        ("UNEXPECTED", 4),
    ]


def dead_letters_of_each(store: RunTables, **which: object) -> list[tuple[int, int]]:
    return [(row.number, row.dead_letters) for row in store.transactions("vehicles", **which)]  # type: ignore[arg-type]


def test_each_transaction_counts_its_own_dead_letters(store: RunTables) -> None:
    for number, in_ledger in enumerate((0, 2, 2, 5)):
        store.set_transaction(transaction(number), dead_letters=in_ledger)
    assert dead_letters_of_each(store) == [(3, 3), (2, 0), (1, 2), (0, 0)]
    assert dead_letters_of_each(store, with_dead_letters=True) == [(3, 3), (1, 2)]
    # Another shard, and another outbox, count for themselves.
    store.set_transaction(transaction(4, shard=1), dead_letters=1)
    store.set_transaction(transaction(5, outbox="outbox2"), dead_letters=1)
    assert dead_letters_of_each(store, limit=2) == [(5, 1), (4, 1)]


def test_dead_letters_are_outstanding_until_a_full_run_succeeds(store: RunTables) -> None:
    now = datetime.now(UTC)
    before, after = now - timedelta(hours=1), now + timedelta(hours=1)
    assert store.dead_letters("vehicles") == DeadLetterTotals()
    store.set_transaction(transaction(0, updated_at=before, dead_letters=2))
    store.set_transaction(transaction(1, updated_at=before, dead_letters=1, publication="bikes"))
    totals = store.dead_letters("vehicles")
    assert (totals.letters, totals.transactions, totals.outstanding) == (2, 1, True)
    for run, mode in (("run1", "changes"), ("run2", "full")):
        store.insert_run("vehicles", run, run_id=run, mode=mode, sequence=1)
        if mode == "changes":
            store.set_run_succeeded("vehicles", run)
        assert store.dead_letters("vehicles").outstanding
    store.set_run_succeeded("vehicles", "run2")
    assert not store.dead_letters("vehicles").outstanding
    # The full run itself, or a later one, sends them to the dead-letter topic again.
    store.set_transaction(transaction(1, updated_at=after, dead_letters=2))
    totals = store.dead_letters("vehicles")
    assert (totals.letters, totals.transactions, totals.last_at is not None, totals.outstanding) == (4, 2, True, True)


def test_a_dry_run_sends_no_dead_letter_again(store: RunTables) -> None:
    store.set_transaction(transaction(), dead_letters=1)
    store.insert_run("vehicles", "run1", run_id="manual__1", mode="full", sequence=7)
    store.set_run_succeeded("vehicles", "run1", outbox="outbox2", not_concluded="it was a dry run")
    (run,) = store.runs("vehicles")
    assert (run.state, run.message) == ("succeeded", "it was a dry run")
    assert store.dead_letters("vehicles").outstanding
    store.set_run_succeeded("vehicles", "run1", outbox="outbox2")
    assert not store.dead_letters("vehicles").outstanding


def test_a_file_in_a_folder_without_permission_does_not_respond_and_is_not_absent(monkeypatch):
    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    store = RunTables("sqlite:////no/folder/operations.sqlite")
    monkeypatch.setattr(Path, "exists", denied)
    assert store.is_there
    with pytest.raises(RetriableError, match=r"operations\.sqlite do not respond"):
        store.runs("vehicles", limit=1)
