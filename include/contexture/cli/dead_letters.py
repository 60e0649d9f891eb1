"""`contexture dead-letters`: what a publication could never send, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contexture.cli.output import printable

if TYPE_CHECKING:
    from contexture.sending.dead_letters import RefusedRecord

app = typer.Typer(add_completion=False)

_KEY_SHOWN = 100
_NAME = typer.Argument(metavar="PUBLICATION", help="Name of the publication, as in its file.")
_FILES = typer.Option(help="A publication file or folder; CONTEXTURE_PUBLICATIONS if none.")


@app.command("dead-letters")
def show_dead_letters(
    name: Annotated[str, _NAME],
    *,
    files: Annotated[Path | None, _FILES] = None,
    last: Annotated[int, typer.Option(min=1, help="At most this many, the latest ones.")] = 100,
    timeout_seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for a response.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show the records of a publication that can never be sent, with the reason from their headers.

    Read from its dead-letter topic, as a read-committed consumer gets it; no value is shown. The connection comes from
    the environment, as for `contexture connection test`, and needs READ on the topic.

    Exit codes: 0 done, whether there are any or not; 2 there is no such publication, connection or topic, or it may not
    be read; 3 brokers are away.
    """
    from contexture.operations.actions.topic_reading import read_dead_letters

    topic, found = read_dead_letters(name, files, last=last, timeout_seconds=timeout_seconds)
    if as_json:
        document = {"publication": name, "topic": topic, "dead_letters": [_document(each) for each in found]}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if not found:
        typer.echo(f"{name}: nothing is in {topic}")
    for each in found:
        for line in _lines(each):
            typer.echo(line)


def _lines(each: RefusedRecord) -> Iterator[str]:
    at = f"{each.at:%Y-%m-%d %H:%M:%S} UTC" if each.at else "at an unknown time"
    what = "no value" if each.value_bytes is None else f"{each.value_bytes} bytes"
    topic = printable(each.topic, limit=None)
    yield f"{at}: {each.error} by {each.by}, intended for {topic}, {what}, key {_key(each.key)}"
    yield f"  {printable(each.message, limit=None)}"
    yield f"  outbox {printable(each.outbox)}, shard {each.shard}, position {each.position}"


def _document(each: RefusedRecord) -> dict[str, Any]:
    return {
        "at": each.at.isoformat() if each.at else None,
        "error": each.error,
        "message": each.message,
        "by": each.by,
        "topic": each.topic,
        "outbox": each.outbox,
        "shard": each.shard,
        "position": each.position,
        "key": None if each.key is None else each.key.decode(errors="replace"),
        "value_bytes": each.value_bytes,
        "partition": each.place[0],
        "offset": each.place[1],
    }


def _key(key: bytes | None) -> str:
    if key is None:
        return "none"
    return printable(key.decode(errors="replace"), _KEY_SHOWN)
