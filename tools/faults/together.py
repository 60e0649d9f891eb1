"""What is done to the broker itself, under several senders at once: each of them is a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.loads import context_load
from tools.faults.moments import Moment
from tools.faults.supervisor import SenderProcess
from tools.faults.trial import Cell, Outcome, Trial, failing_loudly

BROKER_RESTART: Final = "broker restart"


def broker_restart(kafka: EmbeddedKafka, cells: Sequence[Cell], *, hard: bool) -> list[Outcome]:
    """The broker ends under senders that stand at their moments, and comes back.

    Args:
        kafka: a cluster of one.
        cells: the runs, all at once.
        hard: killed, rather than ended in good order.
    """
    trials = [Trial(cell, kafka.bootstrap_servers) for cell in cells]
    loads = [context_load(trial.make_topics(2), outbox="one") for trial in trials]
    with ExitStack() as stack:
        senders: list[SenderProcess] = []
        for trial, load in zip(trials, loads, strict=True):
            # Some transactions live on through the restart, some are given up by the broker when it is back.
            trial.timeout_ms = trial.random.choice([3_000, 60_000])
            senders.append(stack.enter_context(trial.sender(load.shards[0], trial.aim())))
        for sender in senders:
            sender.held()
        early = [trial.random.random() < 0.5 for trial in trials]
        kafka.kill() if hard else kafka.stop()
        _release(senders, early)
        time.sleep(0.5)
        kafka.start()
        _release(senders, [not each for each in early])
        for trial, sender in zip(trials, senders, strict=True):
            with failing_loudly(trial.cell):
                ending = sender.ending()
                trial.expect(ending.error is None, f"the sender ended with {ending.error}: {ending.message}")
    return [trial.outcome(load.records) for trial, load in zip(trials, loads, strict=True)]


def _release(senders: Sequence[SenderProcess], which: Sequence[bool]) -> None:
    for sender, chosen in zip(senders, which, strict=True):
        if chosen and sender.last_moment is not Moment.IN_COMMIT:
            sender.go()
