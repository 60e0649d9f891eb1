"""`python -m contexture_sandbox registry`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from contexture_sandbox.registry.model import Face


def registry(
    files: Annotated[list[Path] | None, typer.Argument(help="Structure messages it begins with.")] = None,
    structures: Annotated[int, typer.Option(help="How many invented structures it begins with.")] = 0,
    port: Annotated[int, typer.Option(help="Where it listens on 127.0.0.1; 0 takes a free port.")] = 0,
    face: Annotated[Face, typer.Option(help="An FMR, or a plain SDMX-REST service.")] = "fmr",
) -> None:
    """Runs a structure registry for tests; prints its URL on standard output when it is ready."""
    from contexture.errors import ConfigurationError
    from contexture_sandbox.registry.refusals import Refusal
    from contexture_sandbox.registry.seeding import seed_message
    from contexture_sandbox.registry.server import TestRegistry

    with TestRegistry(face, port=port) as server, contextlib.suppress(KeyboardInterrupt):
        if structures:
            server.submit(seed_message(structures))
        for file in files or ():
            try:
                server.submit(file.read_bytes())
            except (OSError, Refusal) as error:
                raise ConfigurationError(
                    f"{file} can't be submitted: {error}", next_step="give structure messages in UTF-8"
                ) from error
        count = len(server.store.current())
        typer.echo(f"{count} structures; faults and submissions at {server.url}/sandbox; Ctrl-C ends it", err=True)
        typer.echo(server.url)
        server.wait()
