"""`python -m contexture_sandbox …`: parts of the sandbox in the foreground, until Ctrl-C.

A command imports what it needs inside itself, so that `--help` and the other commands stay quick.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from contexture_sandbox.context_broker.command import context_broker
from contexture_sandbox.registry.command import registry

app = typer.Typer(help="Runs parts of the sandbox on 127.0.0.1 until Ctrl-C.", no_args_is_help=True)


app.command("context-broker")(context_broker)
app.command("registry")(registry)


@app.callback()
def _several_commands() -> None:
    """Runs parts of the sandbox on 127.0.0.1 until Ctrl-C."""


@app.command()
def kafka(
    brokers: Annotated[int, typer.Option(help="1 or 3.")] = 1,
    port: Annotated[list[int] | None, typer.Option(help="A client port for each broker; free ones if none.")] = None,
    data_folder: Annotated[Path | None, typer.Option(help="Keeps the data here; otherwise it is temporary.")] = None,
    heap: Annotated[str, typer.Option(help="The largest heap of each broker.")] = "512m",
) -> None:
    """Runs a Kafka; prints its bootstrap servers on standard output when it is ready."""
    from contexture_sandbox.kafka import EmbeddedKafka

    with EmbeddedKafka(brokers, data_folder=data_folder, ports=port or (), heap=heap, progress=_report) as cluster:
        _report(f"Kafka is ready; its folder is {cluster.folder}; Ctrl-C ends it")
        typer.echo(cluster.bootstrap_servers)
        wait_for_the_end()
        _report("stopping Kafka")


@app.command()
def demo(
    home: Annotated[Path, typer.Option(help="Keeps outboxes and reports here; emptied first.")] = Path("var/demo"),
) -> None:
    """Runs the whole scenario from nothing to verified records in Kafka, then ends everything."""
    from contexture_sandbox.demo.command import demo as run

    raise typer.Exit(run(home))


@app.command()
def up(
    home: Annotated[Path, typer.Option(help="CONTEXTURE_HOME; it stays.")] = Path("var/up"),
    airflow_port: Annotated[int, typer.Option(help="Port of Airflow's UI; 0: a free one.")] = 0,
    broker_port: Annotated[int, typer.Option(help="Port of the test context broker; 0: a free one.")] = 0,
    kafka_port: Annotated[int, typer.Option(help="Kafka's port; 0: a free one.")] = 0,
    entities: Annotated[int, typer.Option(help="How many entities the test context broker holds.")] = 3000,
    registry_port: Annotated[int, typer.Option(help="Port of the test registry; 0: a free one.")] = 0,
    structures: Annotated[int, typer.Option(help="How many structures the test registry holds.")] = 100,
) -> None:
    """Runs the platform with Airflow's UI until Ctrl-C."""
    from contexture_sandbox.demo.command import own_publications
    from contexture_sandbox.demo.command import up as run
    from contexture_sandbox.stack import StackOptions

    ports = (airflow_port, broker_port, kafka_port)
    sources = (entities, registry_port, structures)
    raise typer.Exit(run(StackOptions(own_publications(), home.absolute(), *ports, *sources, in_place=True)))


def wait_for_the_end() -> None:
    """Returns at Ctrl-C or SIGTERM."""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            signal.pause()


def _report(line: str) -> None:
    typer.echo(line, err=True)


def main() -> None:
    """Runs the command line; an error of Contexture ends it with its message and exit code 1."""
    from contexture.errors import ContextureError

    # Both close everything, also in a background job, which shells start with SIGINT ignored.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    try:
        app()
    except ContextureError as error:
        _report(f"error: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
