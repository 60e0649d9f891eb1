"""`contexture quarantine`: what the row rules hold back, and trying it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli.output import printable

if TYPE_CHECKING:
    from contexture.operations.actions.quarantine import QuarantineListing

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show what row rules quarantined, and process it again. Exit codes: 0 done; 2 there is no such publication "
    "or outbox, or nothing to retry; 3 the storage or Airflow did not respond.",
)


@app.callback()
def quarantine() -> None:
    """Show what row rules refused, and process it again."""


@app.command("show")
def show_quarantine(
    publication: Annotated[str | None, typer.Argument(help="Only what this publication quarantined.")] = None,
    *,
    outbox: Annotated[str | None, typer.Option(help="Only of this outbox: its id, or the beginning of it.")] = None,
    rule: Annotated[str | None, typer.Option(help="Only what breaks this rule.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many rows to show; all are counted.")] = 20,
    everything: Annotated[bool, typer.Option("--all", help="Also what was retried already.")] = False,
    bodies: Annotated[bool, typer.Option(help="Show the entities too; they may be personal data.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show which entities were refused, by which rule and why; counts by rule come first."""
    from contexture.operations.actions import quarantine
    from contexture.operations.actions.quarantine import QuarantineFilter

    held = quarantine.read(publication, outbox, QuarantineFilter(rule, everything, bodies), limit=limit)
    if as_json:
        typer.echo(json.dumps(held.as_dict(), ensure_ascii=True, indent=2))
        return
    for line in _lines(held):
        typer.echo(line)


@app.command("retry")
def retry_quarantine(
    outbox: Annotated[str, typer.Argument(metavar="ID", help="An outbox, or its first four characters or more.")],
    *,
    rule: Annotated[list[str] | None, typer.Option(help="Only what breaks this rule; again for more.")] = None,
    reason: Annotated[str | None, typer.Option(help="Reason; stored with the run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Start a run that processes again what an outbox's run refused, and nothing else.

    Entities are taken as they were stored; structures are read from their registry again.
    Airflow is found by CONTEXTURE_AIRFLOW_URL and who asks by CONTEXTURE_AIRFLOW_TOKEN, or CONTEXTURE_AIRFLOW_USER and
    CONTEXTURE_AIRFLOW_PASSWORD; without an address the command to start the run is printed. What passes is published,
    unless the target holds something newer; what is refused again stays, with the new reason.
    """
    from contexture.operations.actions import quarantine

    started = quarantine.start(outbox, tuple(rule or ()), reason)
    if as_json:
        typer.echo(json.dumps(started.as_dict(), indent=2))
        return
    for line in started.lines():
        typer.echo(line)


def _lines(held: QuarantineListing) -> Iterator[str]:
    """Printable text: the data cannot write control characters to the terminal."""
    if not held.counts:
        yield (
            "nothing is quarantined in the stored "
            f"outboxes{f' by the rule {printable(held.rule)}' if held.rule else ''}"
        )
        return
    for (publication, rule), number in sorted(held.counts.items()):
        yield f"{publication}  {printable(rule)}  {number}"
    for row in held.rows:
        yield f"{row['outbox'][:12] if row['outbox'] else '?'}  {_identity(row)}"
        yield f"  {printable(row['rule'] or '')} ({row['severity']}): {printable(row['message'] or '')}"
        if "retried" in row:
            yield f"  retried by outbox {row['retried']}"
        if "body" in row:
            yield f"  {printable(row['body'] or '', limit=None)}"
    if sum(held.counts.values()) > len(held.rows):
        yield f"{len(held.rows)} of {sum(held.counts.values())} rows shown; --limit shows more"
    for step in held.next_steps():
        yield f"Next: {step}"


def _identity(row: Mapping[str, str | None]) -> str:
    # A structure has no path, but a URN for its id.
    names = ("id", "type") if row["path"] == "" else ("path", "id", "type")
    return " ".join(printable(row[name] or "?") for name in names)
