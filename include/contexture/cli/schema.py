"""`contexture schema`."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False)


@app.command("schema")
def show_schema() -> None:
    """Print the JSON Schema of publication files.

    Save it beside your publications and begin each file with `# yaml-language-server: $schema=publication.schema.json`:
    the editor then completes keys, shows what they mean, and marks what is wrong while you write.
    """
    from contexture.publications.editor_schema import editor_schema

    typer.echo(editor_schema(), nl=False)
