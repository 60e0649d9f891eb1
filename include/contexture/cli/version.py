"""`contexture version`."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

import typer

app = typer.Typer(add_completion=False)


@app.command("version")
def show_version() -> None:
    """Print the versions of Contexture and of the Python it runs on."""
    typer.echo(f"contexture {_version()} (Python {sys.version.split()[0]})")


def _version() -> str:
    try:
        return version("contexture")
    except PackageNotFoundError:
        return "from a source tree"
