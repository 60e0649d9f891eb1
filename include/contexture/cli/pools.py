"""`contexture pools`."""

from __future__ import annotations

import json

import typer

app = typer.Typer(add_completion=False)


@app.command("pools")
def show_pools() -> None:
    """Print the pools that the DAGs need, as `airflow pools import FILE` reads them.

    A task of a missing pool never starts, so make them once for each Airflow, and give them slots to fit the machines.
    """
    from contexture.operations.pools import POOLS

    document = {
        name: {"slots": slots, "description": description, "include_deferred": False}
        for name, (slots, description) in POOLS.items()
    }
    typer.echo(json.dumps(document, indent=2))
