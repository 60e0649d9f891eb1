"""`python -m tools.images`: makes stand-ins for the images of docker-compose.yaml that cannot be pulled."""

from __future__ import annotations

from typing import Annotated

import typer

from contexture.errors import ContextureError
from tools.images.building import build_images


def main(
    tags: Annotated[list[str] | None, typer.Argument(help="Images to make; all that are missing if none.")] = None,
    store: Annotated[bool, typer.Option(help="Also compiles the object store, for many minutes.")] = False,
) -> None:
    """Makes missing images under their tags; those of the test servers after `docker compose build`."""
    try:
        built = build_images(typer.echo, only=tags or (), store=store)
    except ContextureError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{len(built)} images made")


if __name__ == "__main__":
    typer.run(main)
