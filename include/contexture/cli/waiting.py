"""What a command says while it waits: on standard error, so that documents for scripts stay whole."""

from __future__ import annotations

import typer


def say(sentence: str) -> None:
    """One sentence for who sits before it."""
    typer.echo(sentence, err=True)
