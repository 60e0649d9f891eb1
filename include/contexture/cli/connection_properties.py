"""How `contexture connection properties` shows the properties of the Kafka client: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import typer

from contexture.kafka.properties import ClientProperty

_LONGEST = 32


def print_json(connection_id: str | None, properties: Sequence[ClientProperty]) -> None:
    """One JSON document with every property."""
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
    word = {"client": "", "contexture": "Contexture", "connection": "connection"}[each.origin]
    return f"{word}, as {each.given_as}" if each.given_as else word


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
