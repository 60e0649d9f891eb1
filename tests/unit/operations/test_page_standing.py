"""The health of a publication, which page of a list is selected, and what the picture of runs looks like."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.attempts import failed_send
from builders.outboxes import NOON
from contexture.monitoring import RunRow
from contexture.monitoring.alerts import PendingSend
from contexture.operations.status.health import DagFacts, HealthAssessment, PublicationHealth, assess_health
from contexture.operations.status.overview import BARS, HEIGHT, run_bars
from contexture.operations.status.sources import Paging
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.state import StatePointer

RESTING = DagFacts(paused=False, active=False, next_run_at=None)
ACTIVE = DagFacts(paused=False, active=True, next_run_at=None)
HELD = DagFacts(paused=True, active=True, next_run_at=None)
NEW = StatePointer()
CONCLUDED = StatePointer(sequence=1, outbox="outbox1", concluded_at=NOON)
UNSEEN = {"since": NOON, "runs": 3, "why": "the walk is short", "next_step": "read again"}
INCOMPLETE = CONCLUDED.model_copy(update={"incomplete": Incompleteness.model_validate(UNSEEN)})
ONCE_INCOMPLETE = CONCLUDED.model_copy(update={"incomplete": Incompleteness.model_validate({**UNSEEN, "runs": 2})})
UNDETECTED = "deletions are not detected since 2026-03-01 12:00 UTC (3 runs): the walk is short. Next: read again"
RESYNC_REQUIRED = CONCLUDED.model_copy(update={"full_run_due": "outbox1 was abandoned"})


def run(state: str = "succeeded", **changes: Any) -> RunRow:
    values: dict[str, Any] = {
        "publication": "vehicles",
        "run": "run1",
        "run_id": "scheduled__1",
        "mode": "changes",
        "sequence": 1,
        "outbox": None,
        "state": state,
        "failed_task": None,
        "message": None,
        "started_at": NOON,
        "ended_at": NOON + timedelta(seconds=60),
    }
    return RunRow(**(values | changes))


def waiting(*sends: Any, status: str = "approved") -> list[PendingSend]:
    return [PendingSend("outbox2", 2, status, sends)]


FAILED = run("failed", failed_task="stage", message="no broker. Next: wait")
ASKS = "12 of 20 identities would be deleted"
USED_UP = failed_send("outbox2", attempt=11, state="exhausted", next_at=None)


@pytest.mark.parametrize(
    ("pointer", "latest", "pending", "dag", "expected"),
    [
        (NEW, None, [], RESTING, HealthAssessment(PublicationHealth.NEVER_RUN)),
        (CONCLUDED, run(), [], RESTING, HealthAssessment(PublicationHealth.IDLE)),
        (INCOMPLETE, run(), [], RESTING, HealthAssessment(PublicationHealth.INCOMPLETE, UNDETECTED)),
        (ONCE_INCOMPLETE, run(), [], RESTING, HealthAssessment(PublicationHealth.IDLE)),
        (INCOMPLETE, run("running"), [], ACTIVE, HealthAssessment(PublicationHealth.RUNNING)),
        (CONCLUDED, None, [], None, HealthAssessment(PublicationHealth.IDLE)),
        (CONCLUDED, run("running"), [], ACTIVE, HealthAssessment(PublicationHealth.RUNNING)),
        (CONCLUDED, run("running"), [], None, HealthAssessment(PublicationHealth.RUNNING)),
        (NEW, None, [], ACTIVE, HealthAssessment(PublicationHealth.RUNNING)),
        (CONCLUDED, FAILED, [], RESTING, HealthAssessment(PublicationHealth.STOPPED, "stage: no broker. Next: wait")),
        (
            RESYNC_REQUIRED,
            run(),
            [],
            RESTING,
            HealthAssessment(PublicationHealth.RESYNC_REQUIRED, "outbox1 was abandoned"),
        ),
        (
            RESYNC_REQUIRED,
            FAILED,
            [],
            RESTING,
            HealthAssessment(PublicationHealth.STOPPED, "stage: no broker. Next: wait"),
        ),
        (
            CONCLUDED,
            run("running"),
            waiting(failed_send("outbox2", attempt=3)),
            ACTIVE,
            HealthAssessment(PublicationHealth.RUNNING, "shard 1, attempt 3 of 11, next at 12:00:05Z"),
        ),
        (
            CONCLUDED,
            run(),
            waiting(USED_UP),
            RESTING,
            HealthAssessment(PublicationHealth.STOPPED, "shard 1, attempt 11 of 11, exhausted: no broker. Next: wait"),
        ),
        (
            CONCLUDED,
            run(),
            waiting(),
            RESTING,
            HealthAssessment(
                PublicationHealth.WAITING,
                "an approved outbox waits: the next run sends it before it reads anything new",
            ),
        ),
        (CONCLUDED, run(), waiting(status="prepared"), RESTING, HealthAssessment(PublicationHealth.IDLE)),
        (
            CONCLUDED,
            run(),
            [PendingSend("outbox2", 2, "approved", (), of_backfill=True)],
            RESTING,
            HealthAssessment(
                PublicationHealth.WAITING,
                "an approved outbox of a backfill waits, and its own run alone sends it: clear its publish task, or "
                "abandon the outbox",
            ),
        ),
    ],
)
def test_the_health_of_a_publication(pointer, latest, pending, dag, expected):
    assert assess_health(pointer, latest, pending, dag) == expected


def test_a_run_that_airflow_ended_without_a_word_is_one_that_stopped():
    judged = assess_health(CONCLUDED, run("running", ended_at=None), [], RESTING)
    assert judged.health == "stopped"
    assert "check its tasks" in judged.reason


PAUSED_RUN = HealthAssessment(
    PublicationHealth.RUNNING,
    "its DAG is paused: the tasks that run now end, and the rest of the run waits until it is resumed",
)


@pytest.mark.parametrize(
    ("latest", "pending", "expected"),
    [
        (run("running", ended_at=None), [], PAUSED_RUN),
        (run(), [], PAUSED_RUN),
        (run(), waiting(), PAUSED_RUN),
        (None, [], PAUSED_RUN),
        (FAILED, [], HealthAssessment(PublicationHealth.STOPPED, "stage: no broker. Next: wait")),
        (
            run("running"),
            waiting(USED_UP),
            HealthAssessment(PublicationHealth.STOPPED, "shard 1, attempt 11 of 11, exhausted: no broker. Next: wait"),
        ),
    ],
)
def test_a_run_of_a_suspended_publication_is_held_and_hides_nothing(latest, pending, expected):
    assert assess_health(CONCLUDED, latest, pending, HELD) == expected


@given(asked=st.integers(), total=st.integers(0, 10**9), size=st.integers(1, 1000))
def test_whatever_page_is_asked_for_one_that_exists_is_shown(asked, total, size):
    paging = Paging.of(asked, total, size)
    assert 1 <= paging.number <= paging.pages
    assert 0 <= paging.offset <= paging.end <= total
    assert total == 0 or paging.end - paging.offset >= 1


def test_the_last_page_holds_the_rest():
    paging = Paging.of(3, 101)
    assert (paging.pages, paging.offset, paging.end) == (3, 100, 101)


def test_no_run_gives_no_bar():
    assert run_bars([], NOON) == ()


def test_the_latest_run_is_at_the_right_and_the_longest_is_highest():
    runs = [
        run("failed", run_id="third", ended_at=NOON + timedelta(seconds=3)),
        run(run_id="second", ended_at=NOON + timedelta(hours=1)),
        run("running", run_id="first", ended_at=None),
    ]
    drawn = run_bars(runs, NOON + timedelta(seconds=10))
    assert [(bar.x, bar.width) for bar in drawn] == [(58.3, 70.0), (245.0, 70.0), (431.7, 70.0)]
    assert [bar.label for bar in drawn] == ["first: running, 10 s", "second: succeeded, 3600 s", "third: failed, 3 s"]
    assert drawn[1].height == HEIGHT
    assert drawn[2].height < drawn[0].height < HEIGHT


def test_only_the_last_runs_are_drawn():
    assert len(run_bars([run()] * 100, NOON)) == BARS


@pytest.mark.parametrize("dag", [ACTIVE, RESTING, None])
def test_a_question_comes_before_what_else_is_going_on(dag: DagFacts | None) -> None:
    assert assess_health(RESYNC_REQUIRED, run("running"), waiting(USED_UP), dag, ASKS) == HealthAssessment(
        PublicationHealth.ASKING, ASKS
    )
    assert list(PublicationHealth)[:2] == ["stopped", "waiting for approval"]
