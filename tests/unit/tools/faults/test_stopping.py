"""A sender that is stopped is watched from outside: whether it stayed so, and that it may be gone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from contexture.sending.testing import MemoryShard
from tools.faults import scenarios, supervisor
from tools.faults.moments import Moment
from tools.faults.probe import Aim
from tools.faults.sender import SendOrder
from tools.faults.supervisor import Ending, SenderProcess
from tools.faults.trial import Cell, Trial

ORDER = SendOrder({}, "cars", MemoryShard(()), aim=Aim(Moment.MID_PRODUCE))


def holds(order: SendOrder, pipe: Any) -> None:
    """A sender that holds at its aim until it is released."""
    pipe.send(("at", Moment.MID_PRODUCE))
    pipe.send(("holding", Moment.MID_PRODUCE))
    pipe.recv()
    pipe.send(("done", {"records_sent": 3, "superseded": False}))


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> Iterator[SenderProcess]:
    # A plain child, for this process is the one that hears of its end: the server of forks reaps what it forked.
    monkeypatch.setattr(supervisor, "_CONTEXT", multiprocessing.get_context("fork"))
    monkeypatch.setattr(supervisor, "send", holds)
    with SenderProcess(ORDER) as started:
        yield started


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "in time"
        time.sleep(0.01)


def pid(sender: SenderProcess) -> int:
    found = sender._process.pid
    assert found is not None
    return found


def test_one_that_stayed_stopped_is_reported_so_and_runs_on(sender: SenderProcess) -> None:
    assert sender.held()
    sender.stop()
    until(sender._is_stopped)
    sender.go()

    assert sender.resume()
    assert sender.ending() == Ending(None, records_sent=3)


def test_one_that_something_else_woke_is_reported(sender: SenderProcess) -> None:
    assert sender.held()
    sender.stop()
    until(sender._is_stopped)
    os.kill(pid(sender), signal.SIGCONT)
    until(lambda: not sender._is_stopped())

    assert not sender.resume()


def test_one_that_is_gone_can_be_stopped_released_and_resumed(sender: SenderProcess) -> None:
    assert sender.held()
    os.kill(pid(sender), signal.SIGKILL)
    until(lambda: not sender.is_alive)

    sender.stop()
    sender.go()
    assert not sender.resume()
    assert sender.ending() == Ending("Killed")


@pytest.mark.parametrize(("stayed", "noted"), [(True, False), (False, True)])
def test_a_pause_that_did_not_last_is_noted_as_disturbed_and_not_as_a_problem(
    monkeypatch: pytest.MonkeyPatch, stayed: bool, noted: bool
) -> None:
    monkeypatch.setattr(scenarios, "_PAUSE_SECONDS", 0.0)
    called: list[str] = []
    paused = SimpleNamespace(
        last_moment=Moment.MID_PRODUCE,
        held=lambda: True,
        stop=lambda: called.append("stop"),
        go=lambda: called.append("go"),
        resume=lambda: called.append("resume") or stayed,  # type: ignore[func-returns-value]
    )
    trial = Trial(Cell(0, "paused", Moment.MID_PRODUCE, 1), "nowhere")

    scenarios._pause(trial, paused, lambda: called.append("meanwhile"))  # type: ignore[arg-type]

    assert called == ["stop", "go", "meanwhile", "resume"]
    assert (bool(trial.disturbed), trial.problems) == (noted, [])


def test_a_sender_that_did_not_come_to_its_aim_is_a_problem() -> None:
    trial = Trial(Cell(0, "paused", Moment.MID_PRODUCE, 1), "nowhere")

    scenarios._pause(trial, SimpleNamespace(held=lambda: False, order=ORDER))  # type: ignore[arg-type]

    assert trial.problems == [f"a sender ended before {ORDER.aim}"]
