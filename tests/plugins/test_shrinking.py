"""What a person is asked when a source has shrunk beyond its limit, and what comes of the answer."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.outboxes import publication
from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables, RunTableWriter
from contexture.monitoring.alerts import AlertKind, compose_alert, kind_of
from contexture.storage.home import Home
from contexture.storage.shrink_report import ShrinkReport
from contexture_airflow.alerts.run_alerts import alert_question, build_question_alert
from contexture_airflow.steps.shrink_approval import compose_question, decide, decision_of_event, find_shrink_question

SOURCE = publication().source.model_dump(exclude_defaults=True)
ASKING = publication(source={**SOURCE, "shrink_limit": {"beyond": "ask", "answer_hours": 2}})
SHRUNK = ConfigurationError("12 are gone", next_step="look", vanishing=12, held=20, limit=10)
APPROVED = {
    "chosen_options": ["Approve"],
    "params_input": {"reason": " they were sold "},
    "responded_at": datetime(2026, 3, 1, tzinfo=UTC),
    "responded_by_user": {"id": "7", "name": "ada"},
    "timedout": False,
}


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    made = Home(str(tmp_path))
    made.publication("vehicles").run("run1").write_shrink_report(
        ShrinkReport.of(['["a"]'], count=12, held=20, limit=10)
    )
    return made


def vanishing(*identities: str) -> ShrinkReport:
    return ShrinkReport(count=12, held=20, limit=10, identities=identities)


def test_a_person_is_asked_only_where_the_publication_says_so(storage: Home) -> None:
    assert find_shrink_question(storage.publication(ASKING.name), ASKING, "run1", SHRUNK) == vanishing('["a"]')
    assert find_shrink_question(storage.publication("vehicles"), publication(), "run1", SHRUNK) is None
    assert (
        find_shrink_question(
            storage.publication(ASKING.name), ASKING, "run1", ConfigurationError("no tenant", next_step="look")
        )
        is None
    )
    assert find_shrink_question(storage.publication(ASKING.name), ASKING, "another run", SHRUNK) is None


def test_the_question_says_how_much_and_what() -> None:
    text = compose_question(ASKING, vanishing(*(f'["vehicles","/","car{number}","car"]' for number in range(40))))

    assert text.startswith("**12** of the 20 identities that publication `vehicles` has sent are missing")
    assert '    ["vehicles","/","car29","car"]' in text
    assert "car30" not in text
    assert "no answer within 2 hours: nothing is sent" in text


@given(st.text(max_size=300))
def test_no_identity_leaves_its_block_of_code(identity: str) -> None:
    lines = compose_question(ASKING, vanishing(identity, "last")).splitlines()

    # The question, a blank line, the identities, a blank line, what the answers do.
    assert len(lines) == 6
    assert lines[2].startswith("    ")
    assert lines[3] == "    last"
    assert lines[2].isprintable()


@pytest.mark.parametrize(
    ("event", "approved", "clause"),
    [
        (APPROVED, True, "ada approved that they are deleted (they were sold)"),
        ({**APPROVED, "params_input": {}}, True, "ada approved that they are deleted (no reason was given)"),
        ({**APPROVED, "chosen_options": ["Reject"]}, False, "ada rejected that they are deleted (they were sold)"),
        ({**APPROVED, "chosen_options": ["Approve", "Reject"]}, False, "ada rejected that they are deleted"),
        ({**APPROVED, "responded_by_user": None}, False, "no answer came in time"),
        ({"error": "timeout has passed", "error_type": "timeout"}, False, "no answer came in time"),
        ({}, False, "no answer came in time"),
    ],
)
def test_only_a_plain_approval_by_a_person_deletes(event: dict[str, Any], approved: bool, clause: str) -> None:
    decision = decision_of_event(event)

    assert decision.approved is approved
    assert decision.clause.startswith(clause)


def test_an_approval_is_kept_with_the_run_and_among_the_interventions(storage: Home) -> None:
    store = RunTables.of_home(storage.root)
    assert store is not None
    with RunTableWriter(store, print) as writer:
        decide(storage.publication("vehicles"), writer, "run1", "manual__1", decision_of_event(APPROVED))

    kept = storage.publication("vehicles").run("run1").shrink_decision()
    assert kept is not None
    assert kept.approved
    assert storage.publication("vehicles").run("run2").shrink_decision() is None
    (row,) = RunTables.of_home(storage.root).interventions("vehicles", limit=5)  # type: ignore[union-attr]
    assert (row.who, row.action, row.reason) == ("ada", "answer about shrinking", "they were sold")
    assert (row.outcome, row.run_id) == ("approved: the run continues", "manual__1")


@pytest.mark.parametrize(
    ("event", "noted"),
    [({**APPROVED, "chosen_options": ["Reject"]}, ["rejected: nothing was sent"]), ({"error": "timeout"}, [])],
)
def test_without_an_approval_the_run_stops_as_ever(storage: Home, event: dict[str, Any], noted: list[str]) -> None:
    store = RunTables.of_home(storage.root)
    with (
        RunTableWriter(store, print) as writer,
        pytest.raises(ConfigurationError, match="may be deleted in one run") as stopped,
    ):
        decide(storage.publication("vehicles"), writer, "run1", "manual__1", decision_of_event(event))

    assert kind_of(stopped.value, "stage") is AlertKind.SHRINK_GUARD
    assert storage.publication("vehicles").run("run1").shrink_decision() is None
    rows = RunTables.of_home(storage.root).interventions("vehicles", limit=5)  # type: ignore[union-attr]
    assert [row.outcome for row in rows] == noted


HOSTILE = '["<img src=x>","a\\nb"]'
CONTEXT: Any = {
    "task_instance": SimpleNamespace(id="ti1", dag_id="publish_vehicles", task_id="stage", log_url="http://a/log"),
    "dag_run": SimpleNamespace(run_id="manual__2026-03-01T12:00:00+00:00"),
}


def test_the_alert_says_what_would_be_deleted_what_is_safe_and_how_to_answer_until_when() -> None:
    asked = build_question_alert(
        ASKING, vanishing(HOSTILE, "x\ny", *["z"] * 20), CONTEXT, datetime(2026, 3, 1, 12, tzinfo=UTC)
    )
    mail = compose_alert(asked)

    assert mail.subject == "[Contexture] vehicles: waiting for approval"
    assert mail.text.splitlines() == [
        "The run manual__2026-03-01T12:00:00+00:00 of publication vehicles waits for an answer.",
        "What happened: 2026-03-01 12:00:00Z: 12 of the 20 identities that were sent are missing from the source, and "
        "10 may be deleted in one run: the run waits for approval to delete them",
        f"Would be deleted: {HOSTILE}",
        "Would be deleted: x\\u000ay",
        *["Would be deleted: z"] * 8,
        "Would be deleted: and 2 more",
        "What is safe: Nothing of this run was sent and nothing deleted: it waits, and needs no slot. Without an "
        "answer in time it fails, and deletes nothing.",
        "What to do next: check that the source is complete, and answer until 2026-03-01 14:00 UTC, with a reason "
        "(Airflow shows the question under Browse, Required Actions, too): Approve deletes all 12 and continues with "
        "what was read; Reject, or no answer, deletes nothing, and the run fails",
        "Answer here: http://localhost:8080/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00/tasks/"
        "stage/required_actions",
        "The run: http://localhost:8080/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00",
        "The log of the task: http://a/log",
    ]
    assert "<img" not in mail.html
    assert '/tasks/stage/required_actions">' in mail.html


def test_an_alert_that_can_not_be_sent_is_no_reason_to_fail(storage: Home, caplog: pytest.LogCaptureFixture) -> None:
    alert_question(storage.publication(ASKING.name), ASKING, vanishing('["a"]'), {}, logging.getLogger(__name__))  # type: ignore[typeddict-item]
    assert "Could not send the alert about the question" in caplog.text
