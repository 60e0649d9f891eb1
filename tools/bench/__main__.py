"""`python -m tools.bench`: takes the measures and prints the table; progress goes to standard error."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from tools.bench.engines.taking import PARTS
from tools.bench.machine import Machine, this_machine
from tools.bench.measures import Measure
from tools.bench.report import markdown, page_table, terminal_table, write_between_markers, write_json
from tools.bench.settings import QUICK, Bench, Setting, Sizes

BENCHES = {
    "encode": "tools.bench.encoding",
    "split": "tools.bench.splitting",
    "send": "tools.bench.sending",
    "memory": "tools.bench.sending",
    "topics": "tools.bench.many_topics",
    "prepare": "tools.bench.preparing",
    "scale": "tools.bench.scaling",
    "changes": "tools.bench.changing",
    "source": "tools.bench.sourcing",
    "registry": "tools.bench.registering",
    "run": "tools.bench.running",
    "engines": "tools.bench.engines.taking",
}
"""Where the function of each bench is; a module is imported when its bench is due."""

APART = frozenset({"engines"})
"""Taken by name alone: it needs servers that `make cluster-test` installs."""


def main(
    only: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(BENCHES)}; may be given again.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and once, to see that it works: no figures.")] = False,
    topics: Annotated[
        list[int] | None, typer.Option(help="Instead of the numbers of `topics`; may be given again.")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help=f"Of `engines` one of {', '.join(PARTS)}; may be given again.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets all figures.")] = None,
    write: Annotated[Path | None, typer.Option(help="A page whose table is rewritten.")] = None,
) -> None:
    """Measures Contexture against its peers: ratios of what is done in turn on this machine, now."""
    chosen = only or [name for name in BENCHES if name not in APART]
    _refuse_unknown("bench", chosen, BENCHES)
    _refuse_unknown("engine", engine or (), PARTS)
    if quick and write:
        raise typer.BadParameter("a quick run gives no figures to write")
    progress = Console(stderr=True, highlight=False, soft_wrap=True)
    machine, moment = this_machine(), datetime.now(UTC)
    for name, value in machine.lines():
        progress.print(f"{name}: {value}")
    sizes = QUICK if quick else Sizes()
    asked = {"topics": tuple(topics or ()), "engines": tuple(engine or ())}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value}
    sizes = replace(sizes, **given)
    measures = _take(chosen, sizes, progress)
    _hand_over(measures, machine, moment, json_file=json_file, write=write)


def _refuse_unknown(kind: str, chosen: Iterable[str], known: Iterable[str]) -> None:
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise typer.BadParameter(f"there is no {kind} {', '.join(unknown)}; there are {', '.join(known)}")


def _take(chosen: Iterable[str], sizes: Sizes, progress: Console) -> list[Measure]:
    started, measures = time.monotonic(), []
    for name in chosen:
        bench = cast(Bench, getattr(import_module(BENCHES[name]), name))
        with tempfile.TemporaryDirectory(prefix=f"contexture-bench-{name}-", ignore_cleanup_errors=True) as folder:

            def report(line: str, name: str = name) -> None:
                progress.print(f"[dim]{time.monotonic() - started:5.0f} s[/dim]  {name}: {line}")

            measures += bench(Setting(sizes, Path(folder), report))
    return measures


def _hand_over(
    measures: list[Measure], machine: Machine, moment: datetime, *, json_file: Path | None, write: Path | None
) -> None:
    output = Console(highlight=False)
    if output.is_terminal:
        output.print(terminal_table(measures))
    else:
        output.print(markdown(measures, machine, moment), soft_wrap=True, markup=False)
    if json_file:
        write_json(json_file, measures, machine, moment)
    if write:
        write_between_markers(write, page_table(measures, machine, moment))


if __name__ == "__main__":
    # However it ends, brokers, Airflow and temporary files go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
