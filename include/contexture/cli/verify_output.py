"""How `contexture verify` shows what it found: for people, and for scripts."""

from __future__ import annotations

import json

import typer

from contexture.operations.verification.report import Reported
from contexture.operations.verification.result import WHAT_TO_DO


def print_json(reported: Reported) -> None:
    """One JSON document with everything."""
    found = reported.found
    document = found.model_dump(mode="json") | {"equal": found.is_equal, "report": reported.uri}
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(reported: Reported) -> None:
    """The outcome, how it was compared, a line for each sample, and what to do."""
    found = reported.found
    typer.echo(f"{found.publication}: {found.told}")
    typer.echo(f"  read {found.records} records of {found.partitions} partitions, run {found.sequence}")
    if found.against == "source":
        typer.echo("  compared with what the source holds")
    for how, count in found.compared.items():
        typer.echo(f"  compared by {how}: {count}")
    for reason, count in found.unjudged.items():
        typer.echo(f"  not judged, {reason}: {count}")
    for topic in found.missing_topics:
        typer.echo(f"  topic {topic} is not there, or may not be seen")
    for each in found.samples:
        place = each.topic if each.partition is None else f"{each.topic}[{each.partition}]"
        typer.echo(f"  {each.kind}: {place} {each.name}: {each.detail}")
    typer.echo(f"  report: {reported.uri}")
    if not found.is_equal:
        typer.echo(f"next: {WHAT_TO_DO}")
