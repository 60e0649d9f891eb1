"""`contexture quarantine`: what the row rules hold back."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Look at what rules hold back. Exit codes: 0 done; 2 there is no such publication or outbox; 3 the storage "
    "did not answer.",
)


@app.callback()
def quarantine() -> None:
    """Look at what rules hold back."""


@app.command("show")
def show_quarantine(
    publication: Annotated[str | None, typer.Argument(help="Only what this publication holds back.")] = None,
    *,
    outbox: Annotated[str | None, typer.Option(help="Only of this outbox, by its id or the beginning of it.")] = None,
    rule: Annotated[str | None, typer.Option(help="Only what breaks this rule.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many rows to show; all are counted.")] = 20,
    bodies: Annotated[bool, typer.Option(help="Show the entities too; they may be personal data.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show which entities were refused, by which rule and why; counts by rule come first."""
    from contexture.cli import quarantine_rows

    held = quarantine_rows.read(publication, outbox, rule, limit=limit, bodies=bodies)
    if as_json:
        typer.echo(json.dumps(held.as_dict(), ensure_ascii=True, indent=2))
        return
    for line in held.lines():
        typer.echo(line)
