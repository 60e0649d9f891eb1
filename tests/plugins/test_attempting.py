"""The retry schedule as it is applied: counted before it is waited, and continued by the next task after a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builders.outboxes import NOON, outbox, publication, records
from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import BrokersAwayError
from contexture.storage.delivery import RetrySchedule, SendAttempts
from contexture.storage.home import Home
from contexture_airflow.steps.publish import AttemptsUsedUpError, SendLaterError, ShardAttempts, build_shard_attempts

AWAY = BrokersAwayError("no broker", next_step="wait")


@dataclass
class Hour:
    """A clock that sleeping moves on."""

    now: datetime = NOON
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


class Sender:
    """One shard that is sent by one task after the other; storage and clock outlive them."""

    def __init__(self, folder: Path) -> None:
        self.log = Home(str(folder)).publication("vehicles").attempts
        self.clock = Hour()
        self.said: list[str] = []
        self.noted: list[SendAttempts] = []

    def task(self, ttl: int = 3, intervals: tuple[int, ...] = (5_000, 20_000)) -> ShardAttempts:
        return ShardAttempts(
            self.log,
            "outbox1",
            0,
            RetrySchedule(ttl, intervals),
            report=self.said.append,
            on_change=self.noted.append,
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def attempts(self) -> SendAttempts:
        found = self.log.of_shard("outbox1", 0)
        assert found is not None
        return found


@pytest.fixture
def sender(tmp_path: Path) -> Sender:
    return Sender(tmp_path)


def failing(times: int, error: Exception = AWAY) -> Callable[[], str]:
    left = iter(range(times))

    def call() -> str:
        if next(left, None) is not None:
            raise error
        return "answered"

    return call


def test_a_failed_attempt_is_counted_reported_and_dated(sender: Sender) -> None:
    assert sender.task().after(AWAY) == 5_000
    noted = sender.attempts()
    assert (noted.attempt, noted.allowed, noted.state, noted.next_at) == (1, 4, "waiting", NOON + timedelta(seconds=5))
    assert sender.said == ["shard 0: attempt 1 of 4, next at 12:00:05Z: no broker. Next: wait"]
    assert sender.noted == [noted]


def test_the_last_interval_is_repeated_until_the_budget_is_used_up(sender: Sender) -> None:
    task = sender.task()
    assert [task.after(AWAY) for _ in range(3)] == [5_000, 20_000, 20_000]
    with pytest.raises(
        AttemptsUsedUpError, match=r"batch_ttl is used up after 4 attempts, .* stays approved: no broker"
    ):
        task.after(AWAY)
    assert (sender.attempts().describe(), sender.attempts().failed) == ("attempt 4 of 4, exhausted", 4)


def test_no_retries_means_one_attempt(sender: Sender) -> None:
    with pytest.raises(AttemptsUsedUpError):
        sender.task(ttl=0).after(AWAY)
    assert sender.attempts().describe() == "attempt 1 of 1, exhausted"


def test_minus_one_never_ends(sender: Sender) -> None:
    task = sender.task(ttl=-1)
    assert [task.after(AWAY) for _ in range(50)][-1] == 20_000
    assert sender.attempts().describe() == "attempt 50 of without end, next at 12:00:20Z"


def test_after_a_kill_the_next_task_goes_on_at_the_same_attempt_and_waits_only_the_rest(sender: Sender) -> None:
    sender.task().after(AWAY)
    sender.clock.now += timedelta(seconds=3)
    again = sender.task()
    again.wait_until_due()
    assert sender.clock.slept == [2.0]
    assert again.after(AWAY) == 20_000
    assert sender.attempts().attempt == 2


def test_a_wait_that_is_over_is_not_waited_again(sender: Sender) -> None:
    sender.task().after(AWAY)
    sender.clock.now += timedelta(seconds=5)
    sender.task().wait_until_due()
    assert sender.clock.slept == []


def test_a_clock_that_was_ahead_and_is_set_right_holds_up_no_attempt(sender: Sender) -> None:
    sender.task().after(AWAY)
    sender.clock.now -= timedelta(days=365)
    sender.task().wait_until_due()
    assert sender.clock.slept == [5.0]


def test_nor_does_it_hold_up_who_waits_without_a_slot(sender: Sender) -> None:
    with pytest.raises(SendLaterError):
        sender.task(intervals=(3_600_000,)).after(AWAY)
    sender.clock.now -= timedelta(days=365)
    with pytest.raises(SendLaterError) as later:
        sender.task().wait_until_due()
    assert later.value.at == sender.clock.now + timedelta(hours=1)


def test_a_task_that_was_killed_while_sending_has_used_up_no_attempt(sender: Sender) -> None:
    sender.task().wait_until_due()
    sender.task().wait_until_due()
    assert sender.log.of_outbox("outbox1") == ()


def test_after_a_used_up_budget_the_next_sender_has_a_new_one(sender: Sender) -> None:
    with pytest.raises(AttemptsUsedUpError):
        sender.task(ttl=0).after(AWAY)
    later = sender.task(ttl=1)
    later.wait_until_due()
    assert later.after(AWAY) == 5_000
    assert (sender.attempts().attempt, sender.attempts().failed, sender.clock.slept) == (1, 2, [])


def test_a_wait_over_a_minute_is_left_to_a_task_that_can_wait_without_a_slot(sender: Sender) -> None:
    with pytest.raises(SendLaterError) as late:
        sender.task(intervals=(60_001,)).after(AWAY)
    assert late.value.at == NOON + timedelta(milliseconds=60_001)
    with pytest.raises(SendLaterError):
        sender.task().wait_until_due()
    assert sender.attempts().attempt == 1
    sender.clock.now = late.value.at
    sender.task().wait_until_due()
    assert sender.clock.slept == []


def test_a_minute_is_slept(sender: Sender) -> None:
    assert sender.task(intervals=(60_000,)).after(AWAY) == 60_000


def test_a_call_is_done_again_by_the_schedule_while_the_brokers_are_away(sender: Sender) -> None:
    assert sender.task().retry_until_answered(failing(2)) == "answered"
    assert sender.clock.slept == [5.0, 20.0]


def test_a_call_that_fails_otherwise_uses_up_no_attempt(sender: Sender) -> None:
    with pytest.raises(RetriableError):
        sender.task().retry_until_answered(failing(1, RetriableError("storage full", next_step="make room")))
    assert sender.log.of_outbox("outbox1") == ()


def test_a_call_that_needs_a_person_is_noted_as_stopped(sender: Sender) -> None:
    with pytest.raises(ConfigurationError):
        sender.task().retry_until_answered(failing(1, ConfigurationError("wrong password", next_step="correct it")))
    assert sender.attempts().describe() == "attempt 1 of 4, stopped"


def test_what_was_sent_after_failures_is_noted_and_what_never_failed_is_not(sender: Sender) -> None:
    sender.task().sent()
    assert sender.log.of_outbox("outbox1") == ()
    sender.task().after(AWAY)
    sender.task().sent()
    assert (sender.attempts().state, sender.attempts().next_at, sender.attempts().failed) == ("sent", None, 1)


def test_the_error_of_the_last_attempt_names_what_sends_the_outbox(tmp_path):
    storage, owner = Home(str(tmp_path)), publication(batches={"batch_ttl": 0})
    outbox(storage, owner, 1, [records("a")], mode="backfill", interval=(NOON, NOON + timedelta(hours=1)))
    outbox(storage, owner, 2, [records("a")])
    next_steps = []
    for name in ("outbox1", "outbox2"):
        with pytest.raises(AttemptsUsedUpError) as raised:
            build_shard_attempts(storage.publication("vehicles"), name, 0, owner).after(AWAY)
        next_steps.append(raised.value.next_step)
    assert next_steps == [
        "fix the cause and clear the publish task of this backfill: it alone sends this outbox, with all its attempts "
        "available again. Last cause: wait",
        "fix the cause and start a new run, or wait for the scheduled one: it sends this outbox first, with all its "
        "attempts available again. Last cause: wait",
    ]
