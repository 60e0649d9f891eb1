"""A run that waits for a person's answer is shown as such, by Airflow or by its own files."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, publication
from contexture.monitoring import RunTables
from contexture.operations.status.health import DagFacts, OpenQuestion
from contexture.operations.status.overview import overview
from contexture.operations.status.sources import Sources, Tables
from contexture.operations.status.status import StatusReport, statuses
from contexture.storage.home import Home
from contexture.storage.publication_store import run_name
from contexture.storage.shrink_report import ShrinkReport

RUN_ID = "scheduled__2026-03-01T12:00:00+00:00"
RUN = run_name(RUN_ID)
SOURCE = publication().source.model_dump(exclude_defaults=True)
ASKING = publication(source={**SOURCE, "shrink_limit": {"beyond": "ask", "answer_hours": 2}})
WAITS = DagFacts(False, True, None, OpenQuestion(RUN_ID, "stage", NOON + timedelta(hours=2)))
BUSY = DagFacts(False, True, None)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    made = Home(str(tmp_path))
    made.publication("vehicles").run(RUN).write_shrink_report(ShrinkReport.of(['["a"]'], count=12, held=20, limit=10))
    store = RunTables.of_home(made.root)
    assert store is not None
    store.insert_run("vehicles", RUN, run_id=RUN_ID, mode="full", sequence=2)
    return made


def sources(storage: Home, dag: DagFacts | None, file: object = ASKING) -> Sources:
    store = RunTables.of_home(storage.root)
    return Sources(storage, Tables(store), {"vehicles": file}, {"vehicles": dag} if dag else {}, NOON)  # type: ignore[dict-item]


def status(storage: Home, dag: DagFacts | None, file: object = ASKING) -> StatusReport:
    (found,) = statuses(sources(storage, dag, file), ["vehicles"])
    return found


def test_what_airflow_waits_for_is_shown_with_how_much_would_be_deleted_and_until_when(storage: Home) -> None:
    found = status(storage, WAITS)
    assert (found.running, found.health) == (False, "waiting for approval")
    assert found.reason == "12 of 20 identities would be deleted, once a person approves until 2026-03-01 14:00 UTC"
    (line,) = overview(sources(storage, WAITS)).lines
    assert line.asked is not None
    assert (line.asked.question.run_id, line.asked.question.task) == (RUN_ID, "stage")
    assert line.asked.shrink_report is not None
    assert line.asked.shrink_report.identities == ('["a"]',)


def test_a_question_whose_files_are_deleted_is_shown_all_the_same(tmp_path: Path) -> None:
    found = status(Home(str(tmp_path / "empty")), WAITS)
    assert found.health == "waiting for approval"
    assert found.reason.startswith("more than source.shrink_limit allows would be deleted")


def test_where_airflow_says_that_no_one_is_asked_it_runs(storage: Home) -> None:
    assert status(storage, BUSY).health == "running"


def test_without_airflow_the_files_of_the_run_show_it(storage: Home) -> None:
    found = status(storage, None)
    assert (found.health, found.reason) == (
        "waiting for approval",
        "12 of 20 identities would be deleted, once a person approves",
    )


def test_without_airflow_it_asks_no_more_once_it_has_decided_failed_or_may_not(storage: Home) -> None:
    assert status(storage, None, publication()).health == "running"
    decision = PublicationPaths("vehicles").shrink_decision(RUN)
    storage.write(decision, b"{}")
    assert status(storage, None).health == "running"
    storage.remove(decision)
    assert status(storage, None).health == "waiting for approval"
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.set_run_failed("vehicles", RUN_ID, task="stage", message="no answer came in time")
    assert status(storage, None).health == "stopped"
