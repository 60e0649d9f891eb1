"""How `contexture structures split` shows artefacts: line by line for people, as one document for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import typer

from contexture.cli.structure_files import Folder
from contexture.cli.terminal_text import printable
from contexture.sources.sdmx import Artefact, Finding, Format, StructureMessageError, split
from contexture.sources.sdmx.splitting.encodings import ByteStream
from contexture.sources.sdmx.validation import SchemaValidator

_HASH_SHOWN = 12


class Shown(Protocol):
    """Shows what was found."""

    def artefact(self, artefact: Artefact, file: str | None) -> None:
        """One artefact, and the file that its message was written to."""

    def end(self, format_: Format | None, findings: Iterable[Finding], error: StructureMessageError | None) -> None:
        """What there is to say at the end; `error` where the message couldn't be gone through."""


def tell(
    stream: ByteStream, media_type: str | None, shown: Shown, folder: Folder | None, *, validate: bool = False
) -> bool:
    """Splits the message and shows what is in it; False where it couldn't be split to its end."""
    parts, error = None, None
    mark = SchemaValidator().marked if validate else None
    try:
        parts = split(stream, media_type)
        for artefact in parts:
            shown.artefact(mark(artefact) if mark else artefact, folder.write(artefact) if folder else None)
    except StructureMessageError as broken:
        error = broken
    shown.end(parts.format if parts else None, parts.findings if parts else (), error)
    return error is None


class Lines:
    """A line for each artefact as it comes, its findings below it, and a last line that sums up."""

    def __init__(self) -> None:
        self._artefacts = 0
        self._bytes = 0

    def artefact(self, artefact: Artefact, file: str | None) -> None:
        """Prints it."""
        if not self._artefacts:
            typer.echo(f"{'bytes':>12}  {'hash':<{_HASH_SHOWN}}  {'refers to':>9}  structure")
        self._artefacts += 1
        self._bytes += artefact.size
        name = artefact.urn or f"{artefact.kind} {artefact.id or 'without id'}, which has no URN"
        short = artefact.content_hash.hex()[:_HASH_SHOWN]
        typer.echo(f"{artefact.size:>12,}  {short}  {len(artefact.references):>9}  {printable(name)}")
        for finding in artefact.findings:
            typer.echo(f"{'':>12}  {printable(str(finding))}")

    def end(self, format_: Format | None, findings: Iterable[Finding], error: StructureMessageError | None) -> None:
        """Prints it."""
        for finding in findings:
            where = "" if finding.offset is None else f" (byte {finding.offset:,})"
            typer.echo(f"{printable(str(finding))}{where}")
        if format_:
            artefacts = f"{self._artefacts:,} artefact{'' if self._artefacts == 1 else 's'}"
            typer.echo(f"{artefacts} with {self._bytes:,} bytes in {format_}")
        if error:
            typer.secho(f"error: {printable(str(error), limit=None)}", err=True, fg=typer.colors.RED)


class JsonDocument:
    """All of it as one JSON document; contents are left out."""

    def __init__(self) -> None:
        self._artefacts: list[dict[str, Any]] = []

    def artefact(self, artefact: Artefact, file: str | None) -> None:
        """Keeps it for the end."""
        self._artefacts.append(
            {
                "urn": artefact.urn,
                "declared_urn": artefact.declared_urn,
                "kind": artefact.kind,
                "agency": artefact.agency,
                "id": artefact.id,
                "version": artefact.version,
                "bytes": artefact.size,
                "content_hash": artefact.content_hash.hex(),
                "references": artefact.references,
                "findings": [_finding(finding) for finding in artefact.findings],
                "file": file,
            }
        )

    def end(self, format_: Format | None, findings: Iterable[Finding], error: StructureMessageError | None) -> None:
        """Prints the document."""
        document = {
            "format": format_,
            "media_type": format_.media_type if format_ else None,
            "artefacts": self._artefacts,
            "findings": [_finding(finding) for finding in findings],
            "error": error.as_dict() if error else None,
        }
        typer.echo(json.dumps(document, ensure_ascii=True, indent=2))


def _finding(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "message": finding.message, "offset": finding.offset}
