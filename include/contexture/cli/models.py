"""`contexture models`: JSON Schemas of entities, kept in the user's own project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Copy JSON Schemas that entities are validated against. Exit codes: 0 done; 2 a name or folder is wrong.",
)


@app.callback()
def models() -> None:
    """Copy JSON Schemas that entities are validated against."""


@app.command("vendor")
def vendor_models(
    chosen: Annotated[list[str], typer.Argument(metavar="SUBJECT|MODEL|FILE…", help="What to copy.")],
    *,
    source: Annotated[Path, typer.Option("--from", help="Folder with local copies of Smart Data Models.")],
    target: Annotated[Path, typer.Option("--to", help="Folder of your project that receives the schemas.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Copy schemas and all they refer to, with an index and a notice of their licence. Nothing is downloaded."""
    from contexture.operations.actions.vendor_models import vendor

    done = vendor(chosen, source, target)
    if as_json:
        typer.echo(json.dumps({"models": done.models, "files": done.files}))
        return
    typer.echo(f"{done.files} schemas are in {target}; for a publication:\nquality:\n  models:")
    for model, path in done.models.items():
        typer.echo(f"    {model}: {target}/{path}")
