"""`contexture import`: publications from the configuration of Cygnus, and of a registry's own producer."""

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
from contexture.importers.cygnus.parameters import DIFFERENCES, Difference
from contexture.importers.result import Imported, ParameterResult, file_name, write_import

if TYPE_CHECKING:
    from contexture.publications import Problem

_STYLES = {
    "kept": "green",
    "replaced": "cyan",
    "needs a decision": "bold yellow",
    "no longer needed": "dim",
    "left out": "dim",
    "unknown": "yellow",
    "wrong": "bold red",
}


def print_json(imported: Imported, output: Path | None, differences: tuple[Difference, ...] = ()) -> None:
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
        **({"differences": [each._asdict() for each in differences]} if differences else {}),
        "problems": [{**problem.as_dict(), "path": problem.path.name} for problem in imported.problems],
    }
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(imported: Imported, output: Path | None, differences: tuple[Difference, ...] = ()) -> None:
    """The publications, the outcome of each parameter, and what to do next."""
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
    _print_list(console, "What the file does not contain", result.decisions)
    _print_list(console, "Connections to make (add what else your brokers require)", result.connections)
    _print_differences(console, differences)
    _print_problems(console, imported.problems)


def _print_parameters(console: Console, explained: Iterable[ParameterResult]) -> None:
    console.print(Text("\nThe outcome of each parameter", style="bold"))
    for each in explained:
        text = Text(f"{each.line:>5}  {each.key} = {each.value}\n         ")
        text.append(each.outcome, style=_STYLES[each.outcome])
        console.print(text.append(f": {each.why}"))


def _print_list(console: Console, title: str, items: Iterable[str]) -> None:
    console.print(Text(f"\n{title}", style="bold"))
    for item in items:
        console.print(Text(f"  {item}"))


def _print_differences(console: Console, differences: tuple[Difference, ...]) -> None:
    if differences:
        console.print(Text("\nWhere Contexture differs from Cygnus on purpose", style="bold"))
    for difference in differences:
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
    grouping: Annotated[Path | None, typer.Option(help="The agent's grouping rules.")] = None,
    mappings: Annotated[Path | None, typer.Option(help="The agent's name mappings.")] = None,
    service: Annotated[list[str] | None, _SERVICE] = None,
    cygnus_version: Annotated[str | None, typer.Option(help="The release of Cygnus, if older than 1.10.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to; without it the files are printed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
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
        write_import(imported, output, force=force)
    _show(imported, output, as_json, DIFFERENCES)


def _show(imported: Imported, output: Path | None, as_json: bool, differences: tuple[Difference, ...] = ()) -> None:
    (print_json if as_json else print_text)(imported, output, differences)
    raise typer.Exit(exit_codes.OK if imported.is_right else exit_codes.INVALID)


_PROPERTIES = typer.Argument(metavar="FILE", help="The properties of the registry's Kafka connection and producer.")
_FORMAT = typer.Option("--format", help="The format of the producer, such as Fusion-JSON, where the file has none.")


@app.command("fmr")
def import_fmr(
    file: Annotated[Path, _PROPERTIES],
    *,
    name: Annotated[str, typer.Option(help="Name of the publication.")] = "structures",
    topic: Annotated[
        str | None, typer.Option(help="Its topics, separated by commas, instead of those in the file.")
    ] = None,
    form: Annotated[str | None, _FORMAT] = None,
    registry: Annotated[str | None, typer.Option(metavar="URL", help="The address of the registry.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder to write to; without it the file is printed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Make a publication of a Fusion registry's Kafka producer, and explain each of its properties.

    The publication is checked as `contexture check` does. Shown are also the connections that have to be made, and
    what the file does not contain. Secrets are never shown nor written: enter them in place of <its name>.

    Exit codes: 0 the file is right and every value kept; 1 otherwise; 2 the file cannot be read or names no Kafka.
    """
    from contexture.importers.fmr import ProducerRequest, from_fmr

    imported = from_fmr(file, ProducerRequest(name, topic, form, registry))
    if output is not None:
        write_import(imported, output, force=force)
    _show(imported, output, as_json)
