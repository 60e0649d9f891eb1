"""`contexture connection`: checks of connections, and the properties of one to Kafka."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from contexture.cli import exit_codes
from contexture.publications.source import SourceKind

if TYPE_CHECKING:
    from contexture.kafka.properties import ClientProperty
    from contexture.operations.actions.source_check import CheckOutcome

app = typer.Typer(add_completion=False, no_args_is_help=True)

_FEWEST_BYTES, _MOST_BYTES = 1_000, 200 * 1024 * 1024


@app.callback()
def connection() -> None:
    """Test a connection to Kafka, a context broker or a structure registry; list what one to Kafka sets."""


def _check_bytes(given: int | None) -> int | None:
    if given is not None and not _FEWEST_BYTES <= given <= _MOST_BYTES:
        raise typer.BadParameter(f"it is a number from {_FEWEST_BYTES:,} to {_MOST_BYTES:,}")
    return given


@app.command("test")
def try_connection(
    connection_id: Annotated[str, typer.Argument(metavar="ID", help="Id of an Airflow connection.")],
    *,
    service: Annotated[str, typer.Option(help="Context broker: the Fiware-Service or tenant to query.")] = "",
    media_type: Annotated[
        str, typer.Option(help="Structure registry: the format in which structures are requested.")
    ] = "",
    kind: Annotated[
        SourceKind | None,
        typer.Option(metavar="KIND", help="ngsi or sdmx: the kind of source, where it cannot be detected."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Kafka: an existing topic for the test's records.")] = None,
    record_bytes: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            metavar="BYTES",
            callback=_check_bytes,
            help="Kafka: size of the largest record, such as that of a publication's largest; else the connection's "
            "message.max.bytes.",
        ),
    ] = None,
    transactional_id_prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Kafka: prefix of transactional ids; else that of the publications."),
    ] = None,
    timeout_seconds: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Seconds for each step.")
    ] = 15.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Test a connection of the environment: AIRFLOW_CONN_KAFKA_DEFAULT is kafka_default.

    Kafka: every bootstrap server, the login, a topic that is made and removed again, a transaction that is read back,
    a record of the largest size, the brokers' clock. A context broker:
    one question that its database has to answer, and which broker it is. A structure registry: which product it is,
    what it lists, what more our credentials show than the public sees, and one structure in the format. Which of both
    it is follows from --kind, from its type (contexture_ngsi, contexture_sdmx), from --media-type or --service, from
    flavour or api in its extra, or from the publications that use it; else the answer decides. Secrets are never shown.

    Exit codes: 0 it works; 1 a step failed; 2 the connection isn't there or can't be used; 3 it could not be reached.
    """
    from contexture.operations.actions.connection_check import check_connection

    outcome = check_connection(
        connection_id,
        service=service,
        timeout_seconds=timeout_seconds,
        media_type=media_type,
        topic=topic,
        record_bytes=record_bytes,
        transactional_id_prefix=transactional_id_prefix,
        kind=kind,
    )
    if as_json:
        typer.echo(outcome.model_dump_json(indent=2))
    else:
        _show(outcome)
    raise typer.Exit(_exit_code(outcome))


@app.command("properties")
def list_properties(
    connection_id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of a Kafka connection.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """List all properties of the Kafka client: value, default and origin. Secrets are masked.

    With an ID as its connection of the environment sets them, also by names of Java clients; without one as Contexture
    does. No broker is asked.

    Exit codes: 0 listed; 2 the connection isn't there or can't be used.
    """
    from contexture.kafka.properties import client_properties
    from contexture.operations.actions.connection_check import settings_of

    found = client_properties(settings_of(connection_id) if connection_id else None)
    if as_json:
        print_json(connection_id, found)
    else:
        print_text(found)


def _show(outcome: CheckOutcome) -> None:
    typer.echo(f"{outcome.connection}: {outcome.target}")
    for step in outcome.steps:
        colour = {True: typer.colors.GREEN, False: typer.colors.RED, None: typer.colors.YELLOW}[step.passed]
        typer.secho(f"  {step.name}: {step.verdict} ({step.seconds:.2f} s): {step.detail}", fg=colour)
        if step.remedy:
            typer.echo(f"    next: {step.remedy}")


def _exit_code(outcome: CheckOutcome) -> int:
    if outcome.passed:
        return exit_codes.OK
    return exit_codes.UNREACHABLE if outcome.unreachable else exit_codes.INVALID


_LONGEST = 32


def print_json(connection_id: str | None, properties: Sequence[ClientProperty]) -> None:
    document = {"connection": connection_id, "properties": [asdict(each) for each in properties]}
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(properties: Sequence[ClientProperty]) -> None:
    """A line each: name, value, the client's default, and who says so."""
    rows = [("property", "value", "client's default", "from")]
    rows += [(each.name, _cut(each.value), _cut(each.default), _origin(each)) for each in properties]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[3]]).rstrip())


def _origin(each: ClientProperty) -> str:
    ours = "enforced by Contexture" if each.is_enforced else "Contexture"
    word = {"client": "", "contexture": ours, "connection": "connection"}[each.origin]
    return f"{word}, as {each.given_as}" if each.given_as else word


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
