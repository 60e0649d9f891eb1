"""`python -m tools.fuzz`: feeds all parsers, prints a table, writes inputs of faults; progress on standard error."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tools.fuzz.report import keep_inputs, table, write_json
from tools.fuzz.supervisor import Result, fuzz_target
from tools.fuzz.targets import TARGETS
from tools.fuzz.trial import tried

FOLDER = Path("var/fuzz")
_WIDTH = 130

_ONLY = typer.Option(help=f"One of: {', '.join(TARGETS)}. May be given again.")
_FOLDER = typer.Option("--folder", help="Gets the inputs of faults.")


def main(
    seconds: Annotated[float, typer.Option(min=0.1, help="In all, shared by the targets.")] = 120.0,
    seed: Annotated[int, typer.Option(help="The same seed and number of cases give the same inputs.")] = 1,
    only: Annotated[list[str] | None, _ONLY] = None,
    cases: Annotated[int | None, typer.Option(min=1, help="Of each target, instead of a time.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets everything.")] = None,
    folder: Annotated[Path, _FOLDER] = FOLDER,
    again: Annotated[Path | None, typer.Option(help="Tries this one input on the target of --only.")] = None,
) -> None:
    """Feeds every parser of untrusted input with damaged and made-up documents, for a bounded time.

    Exit codes: 0 only errors of Contexture came out, in time and within the memory; 1 something else did.
    """
    unknown = sorted(set(only or ()) - set(TARGETS))
    if unknown:
        raise typer.BadParameter(f"there is no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    targets = [TARGETS[name] for name in only or TARGETS]
    if again is not None:
        for target in targets:
            print(f"{target.name}: {tried(target, again.read_bytes())}")
        return
    progress, started = Console(stderr=True, highlight=False, soft_wrap=True), time.monotonic()
    # What was loaded until now is shared by all workers.
    gc.freeze()
    budget = seconds / len(targets) if cases is None else seconds
    results: list[Result] = []
    for target in targets:
        progress.print(f"[dim]{time.monotonic() - started:5.0f} s[/dim] {target.name}: {target.what}")
        results.append(fuzz_target(target, seed, budget, cases, lambda line: progress.print(line, style="red")))
    raise typer.Exit(_hand_over(results, seed, time.monotonic() - started, json_file, folder))


def _hand_over(results: list[Result], seed: int, seconds: float, json_file: Path | None, folder: Path) -> int:
    output = Console(highlight=False)
    if not output.is_terminal:
        output = Console(highlight=False, width=_WIDTH)
    output.print(table(results))
    cases = sum(result.cases for result in results)
    output.print(f"{cases:,} cases with seed {seed} in {seconds:.0f} s")
    faults = list(keep_inputs(results, folder))
    for line in faults:
        output.print(line, style="red", markup=False, soft_wrap=True)
    if json_file:
        write_json(json_file, results, seed, seconds)
    return 1 if faults else 0


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
