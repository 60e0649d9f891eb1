"""Lost packets: in a network namespace of its own, the loopback drops everything for 13.5 s while a sender commits.

The client's time-out is 10 s, so it gives its connection up and connects again; when packets pass again, the kernel
sends the bytes of the former connection once more. Needs the right to make a network namespace (root):

    unshare --net .venv/bin/python -m tools.faults.lost_packets --attacks 6
"""

from __future__ import annotations

import subprocess
import time
from typing import Annotated, Final

import typer

from contexture.errors import RetriableError
from contexture.kafka.errors import BrokersAwayError
from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.attacks import STALL_SECONDS
from tools.faults.loads import context_load, paced
from tools.faults.matrix import BROKER_CONFIG
from tools.faults.moments import Moment
from tools.faults.probe import Aim
from tools.faults.report import complaints
from tools.faults.trial import Cell, Outcome, Trial, failing_loudly

_MOMENTS: Final = (Moment.BEFORE_COMMIT, Moment.MID_PRODUCE, Moment.AFTER_BEGIN)
_MOST_TASKS: Final = 4
_AGAIN: Final = {RetriableError.__name__, BrokersAwayError.__name__}


def main(
    attacks: Annotated[int, typer.Option(min=1, help="How many; some 25 s each.")] = 6,
    seed: Annotated[int, typer.Option(help="The same seed gives the same attacks.")] = 1,
) -> None:
    """Loses all packets while senders commit, and counts what was lost, doubled, reordered or torn.

    Exit codes: 0 nothing; 1 something, or a sender ended as it should not; 2 the namespace is not one of our own.
    """
    if _run("ip", "link", "set", "lo", "up") or _drops(starts=True) or _drops(starts=False):
        raise typer.Exit(2)
    dirty = 0
    with EmbeddedKafka(broker_config=BROKER_CONFIG) as kafka:
        for number in range(attacks):
            cell = Cell(number, "lost packets", _MOMENTS[number % len(_MOMENTS)], seed)
            with failing_loudly(cell):
                outcome = attack(Trial(cell, kafka.bootstrap_servers))
            dirty += not outcome.is_clean
            word = "clean" if outcome.is_clean else "not clean"
            typer.echo(f"{number + 1:3} of {attacks}  {cell.moment}: {word}, {outcome.seconds:.1f} s")
            for line in complaints([outcome]):
                typer.echo(line)
    typer.echo(f"{attacks} attacks with seed {seed}: {dirty} not clean")
    raise typer.Exit(1 if dirty else 0)


def attack(trial: Trial) -> Outcome:
    """Runs a sender that holds, loses all packets, continues, and has packets again 13.5 s later."""
    trial.further, trial.timeout_ms = {"socket.timeout.ms": 10_000}, 30_000
    load = paced(context_load(trial.make_topics(2), outbox="one", transaction=20))
    aim = Aim(trial.cell.moment, trial.random.randrange(3), trial.random.randint(1, 6))
    with trial.sender(load.shards[0], aim) as sender:
        trial.expect(sender.held(), "the sender ended before its moment")
        _drops(starts=True)
        sender.go()
        time.sleep(STALL_SECONDS)
        _drops(starts=False)
        ending = sender.ending()
    for _ in range(_MOST_TASKS):
        if ending.error is None:
            break
        trial.expect(ending.error in _AGAIN, f"a sender ended with {ending.error}: {ending.message}")
        with trial.sender(load.shards[0]) as sender:
            ending = sender.ending()
    trial.expect(ending.error is None, f"the last sender ended with {ending.error}: {ending.message}")
    return trial.outcome(load.records)


def _drops(*, starts: bool) -> int:
    return _run("tc", "qdisc", "add" if starts else "del", "dev", "lo", "root", *(["blackhole"] if starts else []))


def _run(*command: str) -> int:
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
