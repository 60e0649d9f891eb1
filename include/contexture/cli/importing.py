"""`contexture import`: publications from the configuration of what Contexture replaces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contexture.cli import exit_codes

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
    """Make a publication of every Kafka sink of a Cygnus agent, and say what becomes of each of its parameters.

    Every file is checked as `contexture check` does. Told are also the connections that have to be made, what the
    agent's file can't tell, and where Contexture does something else than Cygnus on purpose.

    Exit codes: 0 every file is right and every value kept; 1 otherwise; 2 a file can't be read or has no Kafka sink.
    """
    from contexture.cli import import_output
    from contexture.importers.cygnus import files

    asked = files.Asked(grouping=grouping, mappings=mappings, services=tuple(service or ()), release=cygnus_version)
    imported = files.from_cygnus(agent, asked)
    if output is not None:
        files.write(imported, output, force=force)
    show = import_output.print_json if as_json else import_output.print_text
    show(imported, output)
    raise typer.Exit(exit_codes.OK if imported.is_right else exit_codes.INVALID)
