"""`contexture verify`: verifies the topics of a publication."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contexture.cli import exit_codes

if TYPE_CHECKING:
    from contexture.operations.actions.verify import Reported

app = typer.Typer(add_completion=False)

_NAME = typer.Argument(metavar="PUBLICATION", help="Name of the publication, as in its file.")
_AGAINST = typer.Option(help="sent: what was sent, by state; source: what the source holds now.")
_FILES = typer.Option(help="A publication file or folder; CONTEXTURE_PUBLICATIONS if none.")


@app.command("verify")
def verify_publication(
    name: Annotated[str, _NAME],
    *,
    against: Annotated[Literal["sent", "source"], _AGAINST] = "sent",
    files: Annotated[Path | None, _FILES] = None,
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for a response.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Read a publication's topics back, as a read-committed consumer gets them, and compare them.

    With `--against sent`, the last value of each key and partition is compared; records without a key of their own
    with the archived outboxes that sent them. With `--against source`, body, headers and time of each key's last
    record are compared with what the context broker holds now; what differs is looked at once more. Nothing is
    written to Kafka, and the publication may run meanwhile. The report goes to CONTEXTURE_HOME, which must be that of
    Airflow's tasks, and the outcome to the operational tables. The connections come from the environment, as for
    `contexture connection test`.

    Exit codes: 0 nothing differs; 1 something does; 2 a file or connection can't be used, or nothing was published
    yet, or the publication can't be compared with its source; 3 Kafka, the source or the storage is away, or the source
    was not read completely, so that there is no verdict.
    """
    from contexture.operations.actions.verify import verified

    reported = verified(
        name, files, timeout_seconds=timeout_seconds, against=against, report=lambda text: typer.echo(text, err=True)
    )
    (print_json if as_json else print_text)(reported)
    raise typer.Exit(exit_codes.OK if reported.found.is_equal else exit_codes.INVALID)


def print_json(reported: Reported) -> None:
    found = reported.found
    document = found.model_dump(mode="json") | {"equal": found.is_equal, "report": reported.uri}
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(reported: Reported) -> None:
    """The outcome, how it was compared, a line for each sample, and what to do."""
    found = reported.found
    typer.echo(f"{found.publication}: {found.summary}")
    typer.echo(f"  read {found.records} records of {found.partitions} partitions, run {found.sequence}")
    if found.against == "source":
        typer.echo("  compared with what the source holds")
    for how, count in found.compared.items():
        typer.echo(f"  compared by {how}: {count}")
    for reason, count in found.unjudged.items():
        typer.echo(f"  not compared, {reason}: {count}")
    for topic in found.missing_topics:
        typer.echo(f"  topic {topic} does not exist, or this user may not see it")
    for each in found.samples:
        place = each.topic if each.partition is None else f"{each.topic}[{each.partition}]"
        typer.echo(f"  {each.kind}: {place} {each.name}: {each.detail}")
    typer.echo(f"  report: {reported.uri}")
    if not found.is_equal:
        from contexture.operations.verification.result import WHAT_TO_DO

        typer.echo(f"next: {WHAT_TO_DO}")
