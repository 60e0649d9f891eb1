"""`contexture upgrade`: the files and tables of a home as this Contexture writes them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.cli.upgrading import Line, Plan

app = typer.Typer(add_completion=False)


@app.command("upgrade")
def upgrade_home(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="No run is under way: Airflow is stopped, or a run died unnoticed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Bring what lies below CONTEXTURE_HOME, and the operational tables, to the formats of this Contexture.

    Everything is looked at before anything is changed, also the ledgers of publications whose Kafka connection is in
    the environment. Each file is replaced as a whole; called again after it was killed, it goes on, and a second time
    changes nothing. Runs that are under way keep it from beginning: let them end, and pause the
    publications first.

    Exit codes: 0 everything is of this Contexture's formats; 1 with --dry-run: something is to be done; 2 a later
    Contexture wrote it, or runs are under way; 3 storage, database or Airflow did not answer.
    """
    from contexture.cli.upgrading import carry_out, plan, refuse_while_running

    found = plan()
    if not dry_run:
        if not stopped:
            refuse_while_running(found)
        carry_out(found)
    _print(found, dry_run=dry_run, as_json=as_json)
    raise typer.Exit(exit_codes.INVALID if dry_run and found.has_work else exit_codes.OK)


def _print(found: Plan, *, dry_run: bool, as_json: bool) -> None:
    lines = list(found.lines())
    if as_json:
        document = {
            "home": found.storage.root,
            "dry_run": dry_run,
            "outdated": found.has_work,
            "found": [asdict(line) for line in lines],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo(f"{found.storage.root}:")
    for line in lines:
        typer.echo(f"  {_told(line)}")
    if not any(line.publication for line in lines):
        typer.echo("  no publication has files there: is CONTEXTURE_HOME as Airflow has it?")
    typer.echo(_outcome(found, dry_run=dry_run))


def _told(line: Line) -> str:
    whose = f"{line.publication}: " if line.publication else ""
    files = "" if line.files is None else f", {line.files} file{'s' if line.files != 1 else ''}"
    found = f"format {line.found}" if line.found else "no format"
    if line.note:
        return f"{whose}{line.what}: {line.note}"
    if not line.todo:
        return f"{whose}{line.what}: {found}{files}"
    return f"{whose}{line.what}: {found}{files}, now {line.current}: {line.todo}"


def _outcome(found: Plan, *, dry_run: bool) -> str:
    if not found.has_work:
        return "everything is of this Contexture's formats"
    return "nothing was changed; without --dry-run this is done" if dry_run else "done"
