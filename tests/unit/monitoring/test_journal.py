"""The operational tables are written during the work, and never fail or delay it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from contexture.errors import RetriableError
from contexture.monitoring import RunTables, RunTableWriter


@pytest.fixture
def store(tmp_path: Path) -> RunTables:
    return RunTables(f"sqlite:///{tmp_path}/operations.sqlite")


def started(number: int, into: RunTables) -> None:
    into.insert_run("vehicles", f"run{number}", run_id=f"id{number}", mode="full", sequence=number)


def test_every_queued_call_is_executed_when_the_block_ends(store: RunTables) -> None:
    with RunTableWriter(store) as journal:
        for number in range(20):
            journal.write(lambda into, number=number: started(number, into))
    assert sorted(row.sequence or 0 for row in store.runs()) == list(range(20))


def test_an_unreachable_store_is_reported_once_and_not_called_again(store: RunTables) -> None:
    reported: list[str] = []
    called: list[int] = []

    def unreachable(into: RunTables) -> None:
        called.append(1)
        raise RetriableError("the operational tables do not respond", next_step="check that the database runs")

    with RunTableWriter(store, reported.append) as journal:
        for _ in range(5):
            journal.write(unreachable)
    assert len(called) == 1
    assert reported == [
        "stopped writing to the operational tables: the operational tables do not respond. "
        "Next: check that the database runs. Sending continues"
    ]


def test_a_store_that_hangs_delays_nothing(store: RunTables) -> None:
    reported: list[str] = []
    hang = threading.Event()
    began = time.monotonic()
    with RunTableWriter(store, reported.append, close_seconds=0.2) as journal:
        for _ in range(2_000):
            journal.write(lambda into: hang.wait(60))
    # Waiting for a single call would take a minute.
    assert time.monotonic() - began < 30
    assert len(reported) == 1
    hang.set()


def test_without_a_store_nothing_happens() -> None:
    with RunTableWriter(None) as journal:
        journal.write(lambda into: pytest.fail("nothing is to be written"))


def test_the_error_of_the_work_is_not_hidden(store: RunTables) -> None:
    def work() -> None:
        with RunTableWriter(store) as journal:
            journal.write(lambda into: started(1, into))
            raise ValueError("work")

    with pytest.raises(ValueError, match="work"):
        work()
    assert len(store.runs()) == 1
