"""`contexture structures`: what structure messages hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contexture.cli import exit_codes

app = typer.Typer(add_completion=False, no_args_is_help=True)

_FILE = typer.Argument(help="A structure message of SDMX-ML, SDMX-JSON or Fusion-JSON; - reads standard input.")


@app.callback()
def structures() -> None:
    """Look into structure messages of SDMX."""


@app.command("split")
def split_message(
    file: Annotated[Path, _FILE],
    *,
    to: Annotated[Path | None, typer.Option(help="Folder that gets a message for each artefact.")] = None,
    media_type: Annotated[str | None, typer.Option(help="What its sender says that it is: a hint.")] = None,
    validate: Annotated[bool, typer.Option("--validate", help="Also check each artefact against its schema.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show the maintainable artefacts of a structure message: size, hash, number of references, URN.

    Every byte of an artefact is kept, and whatever is odd is told: URNs that differ from what they should be, unknown
    kinds, what stands outside of artefacts. With --to each artefact is written in a complete message of its own. What
    --validate finds is told and changes nothing: real registries send much that their schemas refuse.

    Exit codes: 0 the message was split to its end; 1 it is broken or no structure message; 2 there is no such file.
    """
    from contexture.cli import structure_files, structure_rows
    from contexture.operations.actions.structure_preview import opened

    with opened(file) as stream:
        shown = structure_rows.JsonDocument() if as_json else structure_rows.Lines()
        told = structure_rows.tell(
            stream, media_type, shown, structure_files.Folder(to) if to else None, validate=validate
        )
    raise typer.Exit(exit_codes.OK if told else exit_codes.INVALID)
