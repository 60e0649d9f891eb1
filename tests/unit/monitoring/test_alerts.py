"""Each alert has a kind, and the same alert is not sent every few minutes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from builders.attempts import failed_send
from builders.outboxes import NOON
from contexture.errors import ConfigurationError, ContextureError, RetriableError, from_dict
from contexture.kafka.error_codes import fenced
from contexture.monitoring.alerts import AlertKind, AlertMemory, Failure, describe_safety, kind_of
from contexture.records.changes import ShrinkGuard
from contexture.storage.home import Home


def failure(minutes: int = 0, *, run: str = "run1", happened: str = "no broker", **changes: object) -> Failure:
    given: dict[str, object] = {
        "publication": "vehicles",
        "run_id": run,
        "task": "publish",
        "at": NOON + timedelta(minutes=minutes),
        "happened": happened,
        "next_step": "wait",
        "run_url": "",
        "log_url": "",
    }
    return Failure(**(given | changes))  # type: ignore[arg-type]


@pytest.fixture
def memory(tmp_path: Path) -> AlertMemory:
    return AlertMemory(Home(str(tmp_path)).publication("vehicles").alerts)


def due(memory: AlertMemory, *alerts: Failure) -> list[bool]:
    """Returns for each of the alerts, in order, whether it is sent."""
    found = []
    for alert in alerts:
        found.append(memory.is_due(alert))
        memory.record(alert, sent=found[-1])
    return found


def shrunk() -> ContextureError:
    with pytest.raises(ConfigurationError) as raised:
        ShrinkGuard(0.1, 1).check(9, 10, confirmed=False)
    return raised.value


def test_an_error_names_its_kind_also_after_it_crossed_processes() -> None:
    assert kind_of(shrunk(), "stage") is AlertKind.SHRINK_GUARD
    assert kind_of(from_dict(shrunk().as_dict()), "stage") is AlertKind.SHRINK_GUARD
    assert kind_of(fenced("x"), "publish") is AlertKind.OVERTAKEN
    assert kind_of(RetriableError("x", next_step="y", alert="not one of ours"), "stage") is AlertKind.RUN_FAILED
    assert kind_of(None, "stage") is AlertKind.RUN_FAILED


@pytest.mark.parametrize(
    ("task", "state", "expected"),
    [
        ("publish", "stopped", AlertKind.FORCED_STOP),
        ("settle", "stopped", AlertKind.FORCED_STOP),
        ("publish", "exhausted", AlertKind.RETRIES_USED_UP),
        ("publish", "waiting", AlertKind.RUN_FAILED),
        ("stage", "stopped", AlertKind.RUN_FAILED),
    ],
)
def test_the_kind_of_a_failed_send_follows_from_its_state_on_storage(
    task: str, state: str, expected: AlertKind
) -> None:
    sends = [failed_send("outbox1", state=state, next_at=None)]
    assert kind_of(ConfigurationError("x", next_step="y"), task, sends) is expected


def test_every_kind_says_what_is_safe() -> None:
    for kind in AlertKind:
        assert describe_safety(kind, outbox_waits=True).endswith(".")
    assert describe_safety(AlertKind.RUN_FAILED, outbox_waits=True).startswith("Nothing is lost")
    assert describe_safety(AlertKind.RUN_FAILED, outbox_waits=False).startswith("Nothing waits")


@pytest.mark.parametrize("kind", [AlertKind.FORCED_STOP, AlertKind.RETRIES_USED_UP, AlertKind.RUN_FAILED])
def test_no_alert_of_a_backfill_says_that_the_next_run_sends_its_outbox(kind: AlertKind) -> None:
    text = describe_safety(kind, outbox_waits=True, of_backfill=True)
    assert "The next run sends it" not in text
    assert "The backfill's own run alone sends it" in text


def test_the_same_alert_is_sent_once_an_hour_for_all_runs(memory: AlertMemory) -> None:
    alerts = [failure(0), failure(1), failure(5, run="run2"), failure(61, run="run3")]
    assert due(memory, *alerts) == [True, False, False, True]


def test_one_run_is_alerted_once_even_if_something_else_fails_in_it(memory: AlertMemory) -> None:
    assert due(memory, failure(0), failure(1, happened="another shard")) == [True, False]


def test_a_new_problem_and_one_of_another_kind_are_sent_immediately(memory: AlertMemory) -> None:
    new = failure(1, run="run2", happened="no room")
    assert due(memory, failure(0), new, failure(2, run="run2", kind=AlertKind.LATE)) == [True, True, True]


def test_what_recovers_itself_is_sent_when_it_happens_to_two_runs_within_the_hour(memory: AlertMemory) -> None:
    alerts = [failure(minute, run=f"run{minute}", kind=AlertKind.OVERTAKEN) for minute in (0, 90, 100, 110, 170)]
    assert due(memory, *alerts) == [False, False, True, False, False]


def test_an_unreadable_memory_suppresses_no_alert(memory: AlertMemory, tmp_path: Path) -> None:
    memory.record(failure(), sent=True)
    (file,) = (tmp_path / "vehicles" / "alerts").iterdir()
    file.write_text("{")
    assert memory.is_due(failure())


def test_each_question_is_sent_once(memory: AlertMemory) -> None:
    asked = [
        failure(0, kind=AlertKind.QUESTION, about="ti1"),
        failure(1, kind=AlertKind.QUESTION, about="ti1"),
        # The run was cleared and asks again, and so does the next run, with the same text.
        failure(2, kind=AlertKind.QUESTION, about="ti2"),
        failure(3, run="run2", kind=AlertKind.QUESTION, about="ti3"),
    ]
    assert due(memory, *asked) == [True, False, True, True]
