"""A hostile network between senders and their broker: one request of the protocol arrives late, twice or never.

Run by `python -m tools.faults.hostile`. Each attack is judged as any run of the fault matrix. Aborts (`EndTxn` without
commit) are attacked in `tests/integration/kafka/test_delayed_ends.py` alone: these senders rarely abort by themselves.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Final

import typer

from contexture.errors import RetriableError
from contexture.kafka.testing import MemoryShard
from tools.faults.kafka_proxy import (
    Answer,
    Cut,
    Delay,
    DropAnswer,
    Duplicate,
    Fate,
    Hold,
    KafkaProxy,
    Request,
    behind_proxy,
)
from tools.faults.loads import context_load
from tools.faults.matrix import BROKER_CONFIG
from tools.faults.moments import Moment
from tools.faults.report import complaints
from tools.faults.trial import Cell, Outcome, Trial

APIS: Final = ("EndTxn", "InitProducerId", "AddPartitionsToTxn", "Produce")
FATES: Final = ("hold", "delay", "duplicate", "cut", "drop answer")
PLACES: Final = tuple(itertools.product(FATES, APIS, (False, True)))
"""Fate, request, and whether the sender is killed."""

_DELAY_SECONDS: Final = 0.5
_MOST_STEPS: Final = 8
_STEPS: Final = frozenset(APIS)


class Attack:
    """One request of an api meets its fate; what is held is released some answers of the protocol later.

    Attributes:
        struck: the request was met.
        late_answer: what the broker said to it when it was held or delayed, by Kafka's name.
    """

    def __init__(self, proxy: KafkaProxy, fate: str, api: str, number: int, steps: int) -> None:
        self.struck = False
        self.late_answer: str | None = None
        self._proxy, self._name, self._api, self._number, self._steps = proxy, fate, api, number, steps
        proxy.fate, proxy.answered = self._fate, self._answered

    def _fate(self, request: Request) -> Fate | None:
        if self.struck or request.api != self._api or request.number < self._number:
            return None
        self.struck = True
        fates: dict[str, Fate] = {
            "hold": Hold("old"),
            "delay": Delay(_DELAY_SECONDS, cut=True),
            "duplicate": Duplicate(),
            "cut": Cut(),
            "drop answer": DropAnswer(),
        }
        return fates[self._name]

    def _answered(self, answer: Answer) -> None:
        if answer.request.is_stale:
            self.late_answer = answer.error
        elif self.struck and answer.request.api in _STEPS:
            self._steps -= 1
            if self._steps == 0:
                self._proxy.release("old")


def attack(proxy: KafkaProxy, bootstrap: str, number: int, seed: int) -> tuple[Outcome, Attack]:
    """Runs one attack through the proxy; `number` chooses its place, and with `seed` its moments."""
    fate, api, is_killed = PLACES[number % len(PLACES)]
    kill = "killed" if is_killed else "lives"
    trial = Trial(Cell(number, f"hostile network: {fate} {api}, {kill}", Moment.MID_PRODUCE, seed), bootstrap)
    load = context_load(trial.make_topics(2), outbox="one")
    first = 1 if api == "InitProducerId" else trial.random.randint(1, 3)
    struck = Attack(proxy, fate, api, first, trial.random.randint(1, _MOST_STEPS))
    if is_killed:
        trial.kill_at(load.shards[0], [trial.aim()])
    _finish(trial, load.shards[0])
    proxy.release("old")
    trial.expect(struck.struck, "the attack met no request")
    outcome = trial.outcome(load.records)
    proxy.reset()
    return outcome, struck


def _finish(trial: Trial, shard: MemoryShard) -> None:
    """Sends the rest of a shard; after an error that a task is repeated for, once more, as Airflow does."""
    with trial.sender(shard, shards=1) as sender:
        ending = sender.ending()
    if ending.error == RetriableError.__name__:
        trial.finish(shard)
    else:
        trial.expect(ending.error is None, f"the sender ended with {ending.error}: {ending.message}")


def main(
    runs: Annotated[int, typer.Option(min=1, help="How many attacks; 40 meet every place once.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same attacks.")] = 1,
) -> None:
    """Attacks senders through a hostile network and counts what was lost, doubled, reordered or torn.

    Exit codes: 0 nothing; 1 something, or a sender ended as it should not.
    """
    dirty = 0
    with behind_proxy(**BROKER_CONFIG) as (proxy, bootstrap, _):
        for number in range(runs):
            outcome, struck = attack(proxy, bootstrap, number, seed)
            dirty += not outcome.is_clean
            ended = "clean" if outcome.is_clean else "not clean"
            late = f", the late request was answered {struck.late_answer}" if struck.late_answer else ""
            typer.echo(f"{number + 1:4} of {runs}  {outcome.cell.scenario}: {ended}{late}, {outcome.seconds:.1f} s")
            for line in complaints([outcome]):
                typer.echo(line)
        if proxy.failure is not None:
            raise proxy.failure
    typer.echo(f"{runs} attacks with seed {seed}: {dirty} not clean")
    raise typer.Exit(1 if dirty else 0)


if __name__ == "__main__":
    typer.run(main)
