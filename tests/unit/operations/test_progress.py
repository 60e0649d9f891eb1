"""What a publication does now: the tasks of its run, what it has read and sent, and the time left."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.attempts import failed_send
from builders.landing import car, landing
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunRow, RunTables, TransactionRow, TransactionStatus
from contexture.operations.status.detail import StepTime
from contexture.operations.status.health import DagFacts
from contexture.operations.status.progress import NOTHING, Amount, RunProgress, find_progress, remaining_seconds
from contexture.operations.status.sources import Sources, Tables
from contexture.storage.home import Home
from contexture.storage.schemas import LANDING
from contexture.storage.state import StatePointer

ACTIVE = DagFacts(paused=False, active=True, next_run_at=None)
RESTING = DagFacts(paused=False, active=False, next_run_at=NOON + timedelta(minutes=5))
SETTLED = StepTime("settle", "success", 1.0, None, NOON - timedelta(seconds=40))
STAGED = StepTime("stage", "success", 20.0, None, NOON - timedelta(seconds=39))
STAGING = StepTime("stage", "running", None, None, NOON - timedelta(seconds=20))
SENDING = StepTime("publish", "running", None, 0, NOON - timedelta(seconds=10))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[RunTables]:
    opened = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    yield opened
    opened.close()


def run(outbox_id: str | None = None, *, state: str = "running", mode: str = "full") -> RunRow:
    ended = None if state == "running" else NOON
    return RunRow("vehicles", "run2", "manual__2", mode, 2, outbox_id, state, None, None, NOON, ended)


def progress(
    home: Home, dag: DagFacts, latest: RunRow | None, *steps: StepTime, tables: RunTables | None = None
) -> RunProgress:
    sources = Sources(home, Tables(tables), {"vehicles": publication()}, {"vehicles": dag}, NOON)
    return find_progress(sources, "vehicles", latest, steps)


def conclude(home: Home, *, source_count: int) -> None:
    made = outbox(home, publication(), 1, [records("a")])
    changed = made.model_copy(update={"source_count": source_count})
    home.write(PublicationPaths("vehicles").manifest("outbox1"), changed.to_json())
    for status in ("approved", "concluded"):
        home.publication("vehicles").outboxes.set_status("outbox1", status, reason="good")
    home.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1", sequence=1))


def write_part(home: Home, name: str, rows: int) -> None:
    columns = {field.name: pa.nulls(rows, field.type) for field in LANDING}
    with home.write_atomically(f"{PublicationPaths('vehicles').landing('run2')}/{name}") as path:
        pq.write_table(pa.table(columns), path)


def test_nothing_has_run_and_the_next_run_is_known(home: Home) -> None:
    found = progress(home, RESTING, None)
    assert (found.active, found.run, found.tasks, found.task) == (False, None, (), None)
    assert (found.read, found.sent, found.next_run_at) == (NOTHING, NOTHING, NOON + timedelta(minutes=5))


def test_a_run_that_is_queued_has_no_row_of_its_own_yet(home: Home) -> None:
    found = progress(home, ACTIVE, run(state="succeeded"), SETTLED)
    assert (found.active, found.task) == (True, None)


def test_a_full_read_is_measured_against_what_the_source_held_last(home: Home) -> None:
    conclude(home, source_count=300)
    write_part(home, "part-00000.parquet", 60)
    write_part(home, "part-00001.parquet", 40)
    found = progress(home, ACTIVE, run(), SETTLED, STAGING)
    assert [(task.task, task.state) for task in found.tasks] == [
        ("settle", "success"),
        ("stage", "running"),
        ("quality_gate", "none"),
        ("publish", "none"),
        ("conclude", "none"),
    ]
    assert found.task == STAGING
    assert found.read == Amount(done=100, total=300, seconds_left=40.0)
    assert found.read.share == pytest.approx(1 / 3)
    assert found.sent == NOTHING


def test_how_much_a_run_of_changes_reads_is_not_known_before_its_end(home: Home) -> None:
    conclude(home, source_count=300)
    write_part(home, "part-00000.parquet", 60)
    assert progress(home, ACTIVE, run(mode="changes"), STAGING).read == Amount(60, None, None)
    landing(home, "vehicles", "run2", [car(1, 1.0), car(2, 2.0)])
    assert progress(home, ACTIVE, run(mode="changes"), STAGING).read == Amount(2, 2, None)


def test_too_many_parts_are_not_counted(home: Home) -> None:
    for number in range(65):
        write_part(home, f"part-{number:05}.parquet", 1)
    assert progress(home, ACTIVE, run(), STAGING).read == Amount(None, None, None)


def sent(tables: RunTables, number: int, records_sent: int, seconds_ago: int) -> None:
    at, status = NOON - timedelta(seconds=seconds_ago), TransactionStatus.SENT
    row = TransactionRow("vehicles", "outbox2", 0, number, status, records_sent, 10, records_sent, None, None, at)
    tables.set_transaction(row)


def test_what_is_sent_is_measured_by_the_speed_of_this_task(home: Home, tables: RunTables) -> None:
    outbox(home, publication(), 2, [records(*"abcdefghij")])
    sent(tables, 0, 4, 3_600)
    sent(tables, 1, 2, 5)
    found = progress(home, ACTIVE, run("outbox2"), SETTLED, STAGED, SENDING, tables=tables)
    # In ten seconds two; four are left. Those of an hour ago were sent by another task.
    assert found.sent == Amount(done=6, total=10, seconds_left=20.0)
    assert found.read == Amount(10, 10, None)
    assert found.task == SENDING
    without_tables = progress(home, ACTIVE, run("outbox2"), SETTLED, STAGED, SENDING)
    assert without_tables.sent == Amount(None, 10, None)


def test_a_run_that_has_ended_has_no_time_left(home: Home, tables: RunTables) -> None:
    outbox(home, publication(), 2, [records(*"abcd")])
    sent(tables, 0, 2, 5)
    ended = StepTime("publish", "failed", 8.0, 0, NOON - timedelta(seconds=10))
    found = progress(home, RESTING, run("outbox2", state="failed"), SETTLED, STAGED, ended, tables=tables)
    assert (found.active, found.task, found.sent) == (False, None, Amount(2, 4, None))


def test_a_failed_send_is_shown_with_its_next_attempt(home: Home) -> None:
    outbox(home, publication(), 2, [records("a")])
    home.publication("vehicles").outboxes.set_status("outbox2", "approved", reason="good")
    home.publication("vehicles").attempts.keep(failed_send("outbox2", attempt=3))
    found = progress(home, ACTIVE, run("outbox2"), SENDING)
    assert found.attempt == "shard 1: attempt 3 of 11, next at 12:00:05Z"


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "left"),
    [
        (25, 100, 10.0, 30.0),
        (99, 100, 99.0, 1.0),
        (0, 100, 10.0, None),
        (None, 100, 10.0, None),
        (25, None, 10.0, None),
        (100, 100, 10.0, None),
        (120, 100, 10.0, None),
        (25, 100, 0.5, None),
    ],
)
def test_the_time_left_is_known_with_a_speed_and_a_rest(
    done: int | None, total: int | None, elapsed: float, left: float | None
) -> None:
    assert remaining_seconds(done, total, elapsed) == left
