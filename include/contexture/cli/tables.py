"""`contexture tables`: the operational tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def tables() -> None:
    """The operational tables: what ran and what was sent, for people."""


@app.command("rebuild")
def rebuild_tables(
    publications: Annotated[
        list[str] | None, typer.Argument(metavar="[PUBLICATION…]", help="Names of publications; all if none.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Rebuild the operational tables from the ledgers in Kafka and the outboxes of CONTEXTURE_HOME.

    For tables that were lost or are new. What is there stays, and a second time changes nothing. Kafka connections come
    from the environment, as for `contexture connection test`.

    Exit codes: 0 done; 2 there is no such publication, connection or database; 3 brokers, database or storage are away.
    """
    from contexture.operations.actions.rebuild import rebuilt

    found = [asdict(each) for each in rebuilt(publications or [])]
    if as_json:
        typer.echo(json.dumps({"publications": found}, indent=2))
        return
    for each in found:
        typer.echo(
            f"{each['publication']}: {each['sent']} transactions sent, {each['pending']} pending, "
            f"{each['attempts']} shards whose sending failed"
        )
