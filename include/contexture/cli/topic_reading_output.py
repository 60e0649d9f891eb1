"""How `contexture topics read` shows records: for people, and for scripts."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import typer

from contexture.cli.terminal_text import printable
from contexture.kafka import ReplicaRecord
from contexture.operations.actions.topic_reading import Newest

_SHOWN_CHARACTERS = 2_000


def print_json(found: Newest) -> None:
    """One JSON document with everything; what is no text stands as `{"base64": …}`."""
    records = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": _time(record),
            "key": _as_json(record.key),
            "value": _as_json(record.value),
            "headers": [[name, _as_json(value)] for name, value in record.headers],
        }
        for record in found.records
    ]
    document = {"connection": found.connection, "topics": found.topics, "records": records}
    typer.echo(json.dumps(document, ensure_ascii=True, indent=2))


def print_text(found: Newest) -> None:
    """A block for each record, the newest last."""
    for record in found.records:
        place = f"{record.topic}[{record.partition}] at offset {record.offset}"
        typer.secho(f"{printable(place)}, {_time(record) or 'without a time'}", bold=True)
        typer.echo(f"  key    {_shown(record.key, 'none')}")
        typer.echo(f"  value  {_shown(record.value, 'null: deleted')}")
        for name, value in record.headers:
            typer.echo(f"  header {printable(name)}: {_shown(value, 'null')}")
    typer.echo(f"{found.connection}: {len(found.records)} records, the newest of {len(found.topics)} topics")


def _time(record: ReplicaRecord) -> str | None:
    if record.timestamp_ms is None:
        return None
    return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _as_json(content: bytes | None) -> object:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _shown(content: bytes | None, nothing: str) -> str:
    if content is None:
        return nothing
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{len(content)} bytes that are no text; --json has them"
    shown = printable(text, _SHOWN_CHARACTERS)
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown} ({len(content)} bytes; --json has all)"
