"""`contexture ledger`: the topic that says what was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from contexture.operations.actions.rebuild import LedgerRebuildPlan

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def ledger() -> None:
    """The ledgers in Kafka: how far each shard of a publication was sent."""


@app.command("rebuild")
def rebuild_ledger(
    publication: Annotated[str, typer.Argument(help="Name of the publication.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written to the ledger.")] = False,
    assume_sent: Annotated[
        bool,
        typer.Option(
            "--assume-sent",
            help="Count transactions as sent if the topics do not show it; otherwise they count as unsent.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Write without confirmation.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document for scripts; needs --yes to write.")
    ] = False,
) -> None:
    """Rebuild a lost ledger from the outboxes of CONTEXTURE_HOME and the records in the topics.

    Pause the publication's DAG first: senders that run are fenced. A transaction is taken for sent when its records are
    the newest of their keys, or carry their registry transaction. Where the topics do not show it (records equal to
    older ones, as full runs have them; records without keys), it is sent again, unless --assume-sent is given. Files
    and connections come from the environment, as for `contexture topics plan`.

    Exit codes: 0 done, or shown; 2 the ledger is not lost, or something isn't there; 3 brokers or storage are away.
    """
    from contexture.cli.output import print_progress
    from contexture.operations.actions import rebuild

    lost = rebuild.plan_ledger_rebuild(publication, print_progress, assume_sent=assume_sent)
    if not as_json:
        _print(lost)
    writes = not dry_run and (yes or (not as_json and typer.confirm(f"Write {lost.topic}?")))
    if writes:
        rebuild.rebuild_ledger(lost, print_progress)
    if as_json:
        typer.echo(json.dumps(_document(lost, written=writes), indent=2))
    elif writes:
        typer.echo("written; clear the task that failed, or start a new run")
    else:
        typer.echo("nothing was written")


def _print(lost: LedgerRebuildPlan) -> None:
    typer.echo(f"{lost.topic} {lost.how}. It would contain:")
    for each in lost.shards:
        row = "no row" if each.entry is None else f"sequence {each.entry.sequence}, position {each.entry.position}"
        typer.echo(f"  shard {each.shard}: {row}; {each.why}")
        if each.uncertain:
            typer.echo(f"    for {each.uncertain} more transactions, the topics do not show whether they were sent")


def _document(lost: LedgerRebuildPlan, *, written: bool) -> dict[str, Any]:
    return {
        "publication": lost.publication.name,
        "topic": lost.topic,
        "lost": lost.how,
        "written": written,
        "shards": [
            {
                "shard": each.shard,
                "row": None if each.entry is None else json.loads(each.entry.to_json()),
                "why": each.why,
                "uncertain_transactions": each.uncertain,
            }
            for each in lost.shards
        ],
    }
