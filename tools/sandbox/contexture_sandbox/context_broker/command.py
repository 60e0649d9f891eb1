"""`python -m contexture_sandbox context-broker`."""

from __future__ import annotations

import contextlib
from typing import Annotated, Literal

import typer

LinkedDataFlavour = Literal["orion-ld", "orion-ld-1.4", "scorpio", "stellio"]


def context_broker(
    port: Annotated[int, typer.Option(help="Where it listens on 127.0.0.1; 0 takes a free port.")] = 0,
    entities: Annotated[int, typer.Option(help="How many NGSIv2 entities it begins with.")] = 0,
    seed: Annotated[int, typer.Option(help="Which content; the same seed gives the same.")] = 1,
    bad: Annotated[bool, typer.Option(help="Adds entities that break the row rules.")] = False,
    linked_data: Annotated[
        LinkedDataFlavour | None,
        typer.Option(help="Answers NGSI-LD as this broker does; scorpio and stellio have no NGSIv2."),
    ] = None,
) -> None:
    """Runs a context broker for tests; prints its URL on standard output when it is ready."""
    from contexture_sandbox.context_broker.entities import bad_entities, seed_entities
    from contexture_sandbox.context_broker.server import TestBroker

    with TestBroker(port) as broker, contextlib.suppress(KeyboardInterrupt):
        broker.load(seed_entities(entities, seed))
        if bad:
            broker.load(bad_entities())
        if linked_data is not None:
            broker.speak_linked_data(linked_data)
        typer.echo(
            f"{broker.store.count()} entities; faults and loading at {broker.url}/sandbox; Ctrl-C ends it", err=True
        )
        typer.echo(broker.url)
        broker.wait()
