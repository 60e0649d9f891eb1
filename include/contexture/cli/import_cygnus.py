"""`contexture import cygnus`: publications from the configuration of Cygnus."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from contexture.cli import exit_codes
from contexture.importers.cygnus.parameters import DIFFERENCES, ParameterResult
from contexture.importers.cygnus.publications import Imported, file_name

if TYPE_CHECKING:
    from contexture.publications import Problem

_STYLES = {
    "kept": "green",
    "replaced": "cyan",
    "no longer needed": "dim",
    "left out": "dim",
    "unknown": "yellow",
    "wrong": "bold red",
}


def print_json(imported: Imported, output: Path | None) -> None:
    """One JSON document about everything."""
    result = imported.result
    document = {
        "right": imported.is_right,
        "publications": [
            {**dataclasses.asdict(draft), "path": str(output / file_name(draft.name)) if output else None}
            for draft in result.drafts
        ],
        "parameters": [dataclasses.asdict(each) for each in result.explained],
        "connections": list(result.connections),
        "decisions": list(result.decisions),
        "differences": [difference._asdict() for difference in DIFFERENCES],
        "problems": [{**problem.as_dict(), "path": problem.path.name} for problem in imported.problems],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(imported: Imported, output: Path | None) -> None:
    """The publications, what became of each parameter, and what to do next."""
    console = Console(highlight=False, soft_wrap=True)
    result = imported.result
    for draft in result.drafts:
        if output is None:
            console.print(Text(f"--- {file_name(draft.name)} ({draft.origin})", style="bold"))
            console.print(Text(draft.text))
        else:
            console.print(Text(f"wrote {output / file_name(draft.name)} from {draft.origin}", style="bold green"))
    if output is not None:
        for name in imported.beside:
            console.print(Text(f"copied {output / name}", style="green"))
    _print_parameters(console, result.explained)
    _print_list(console, "What the file doesn't say", result.decisions)
    _print_list(console, "Connections to make (they can hold what else your brokers ask for)", result.connections)
    _print_differences(console)
    _print_problems(console, imported.problems)


def _print_parameters(console: Console, explained: Iterable[ParameterResult]) -> None:
    console.print(Text("\nWhat becomes of each parameter", style="bold"))
    for each in explained:
        text = Text(f"{each.line:>5}  {each.key} = {each.value}\n         ")
        text.append(each.outcome, style=_STYLES[each.outcome])
        console.print(text.append(f": {each.why}"))


def _print_list(console: Console, title: str, items: Iterable[str]) -> None:
    console.print(Text(f"\n{title}", style="bold"))
    for item in items:
        console.print(Text(f"  {item}"))


def _print_differences(console: Console) -> None:
    console.print(Text("\nWhere Contexture differs from Cygnus on purpose", style="bold"))
    for difference in DIFFERENCES:
        console.print(Text(f"  {difference.title}", style="bold"))
        console.print(Text(f"    Cygnus: {difference.cygnus}", style="dim"))
        console.print(Text(f"    Contexture: {difference.contexture}"))


def _print_problems(console: Console, problems: Iterable[Problem]) -> None:
    for problem in problems:
        console.print()
        first, *rest = str(problem).splitlines()
        first = first.replace(str(problem.path), problem.path.name)
        console.print(Text(first, style="bold red" if problem.severity == "error" else "yellow"))
        for line in rest:
            console.print(Text(line))


app = typer.Typer(add_completion=False, no_args_is_help=True)

_AGENT = typer.Argument(metavar="AGENT.CONF", help="The Flume configuration of a Cygnus agent.")
_SERVICE = typer.Option(help="A Fiware-Service to publish; repeat it for several. Each gets a publication.")


@app.callback()
def importing() -> None:
    """Turn the configuration of what Contexture replaces into publications."""


@app.command("cygnus")
def import_cygnus(
    agent: Annotated[Path, _AGENT],
    *,
    grouping: Annotated[Path | None, typer.Option(help="Its grouping rules.")] = None,
    mappings: Annotated[Path | None, typer.Option(help="Its name mappings.")] = None,
    service: Annotated[list[str] | None, _SERVICE] = None,
    cygnus_version: Annotated[str | None, typer.Option(help="Its release, where it is older than 1.10.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to; without it the files are printed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Make a publication of every Kafka sink of a Cygnus agent, and explain each of its parameters.

    Every file is checked as `contexture check` does. Shown are also the connections that have to be made, what the
    agent's file doesn't say, and where Contexture does something else than Cygnus on purpose.

    Exit codes: 0 every file is right and every value kept; 1 otherwise; 2 a file can't be read or has no Kafka sink.
    """
    from contexture.importers.cygnus import publications

    asked = publications.ImportRequest(
        grouping=grouping, mappings=mappings, services=tuple(service or ()), release=cygnus_version
    )
    imported = publications.from_cygnus(agent, asked)
    if output is not None:
        publications.write(imported, output, force=force)
    show = print_json if as_json else print_text
    show(imported, output)
    raise typer.Exit(exit_codes.OK if imported.is_right else exit_codes.INVALID)
