"""`python -m tools.faults`: runs the fault matrix and prints its tables; progress goes to standard error."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.matrix import BROKER_CONFIG, NAMES, cells, run_all
from tools.faults.report import complaints, disturbances, tables, write_json
from tools.faults.trial import Outcome

# A matrix of this size must also have aimed well.
_WHOLE_MATRIX = 200
_KILLS_INSIDE = 100
_WIDTH = 150


def main(
    runs: Annotated[int, typer.Option(min=1, help="How many runs.")] = 216,
    seed: Annotated[int, typer.Option(help="The same seed gives the same runs.")] = 1,
    only: Annotated[list[str] | None, typer.Option(help=f"One of: {'; '.join(NAMES)}. May be given again.")] = None,
    beside: Annotated[int, typer.Option(min=1, help="How many runs go on at once.")] = 4,
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets every run.")] = None,
) -> None:
    """Kills, stops and replaces senders at every moment of the protocol, and reads back what became of it.

    Exit codes: 0 nothing was lost, doubled or reordered; 1 something was, or a sender ended as it should not.
    """
    unknown = sorted(set(only or ()) - set(NAMES))
    if unknown:
        raise typer.BadParameter(f"there is no scenario {', '.join(unknown)}; there are {'; '.join(NAMES)}")
    planned = cells(runs, seed, only or NAMES)
    progress, started = Console(stderr=True, highlight=False, soft_wrap=True), time.monotonic()
    done: list[Outcome] = []

    def report(outcome: Outcome) -> None:
        done.append(outcome)
        cell, word = outcome.cell, "clean" if outcome.is_clean else "[red]not clean[/red]"
        stamp = f"[dim]{time.monotonic() - started:5.0f} s[/dim] {len(done):4} of {len(planned)}"
        progress.print(f"{stamp}  {cell.scenario}, {cell.moment}: {word}, {outcome.seconds:.1f} s")
        for line in [*complaints([outcome]), *disturbances([outcome])]:
            progress.print(line, markup=False)

    with EmbeddedKafka(broker_config=BROKER_CONFIG) as kafka:
        outcomes = run_all(kafka, planned, report, beside=beside)
    raise typer.Exit(_hand_over(outcomes, seed, time.monotonic() - started, json_file))


def _hand_over(outcomes: list[Outcome], seed: int, seconds: float, json_file: Path | None) -> int:
    output = Console(highlight=False)
    if not output.is_terminal:
        output = Console(highlight=False, width=_WIDTH)
    for table in tables(outcomes):
        output.print(table)
    inside = sum(outcome.kills_inside for outcome in outcomes)
    output.print(f"{len(outcomes)} runs with seed {seed} in {seconds:.0f} s; {inside} kills inside a transaction")
    for line in disturbances(outcomes):
        output.print(line, style="yellow", markup=False, soft_wrap=True)
    found = complaints(outcomes)
    if len(outcomes) >= _WHOLE_MATRIX and inside < _KILLS_INSIDE:
        found.append(f"only {inside} kills were inside a transaction; a whole matrix has at least {_KILLS_INSIDE}")
    for line in found:
        output.print(line, style="red", markup=False, soft_wrap=True)
    if json_file:
        write_json(json_file, outcomes, seed, seconds)
    return 1 if found else 0


if __name__ == "__main__":
    # However it ends, the broker and the senders go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
