"""`contexture structures`: the artefacts of a structure message, and messages with one of them each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from contexture.cli import exit_codes
from contexture.cli.output import printable
from contexture.operations.actions.check import unusable_file_error
from contexture.sources.sdmx import Artefact, Format, SplitWarning, StructureMessageError, split
from contexture.sources.sdmx.validation import SchemaValidator

if TYPE_CHECKING:
    from contexture.sources.sdmx.splitting.encodings import ByteStream

_SAFE = re.compile(r"[^A-Za-z0-9_@$.+-]+")
_LONGEST = 150


class Folder:
    """Where messages of single artefacts are written.

    Raises:
        ConfigurationError: the folder can't be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._given: set[str] = set()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unusable_file_error(error) from None

    def write(self, artefact: Artefact) -> str:
        """Writes the artefact's message; gives the name of the file.

        Raises:
            ConfigurationError: it can't be written.
        """
        name = self._name(artefact)
        try:
            (self._path / name).write_bytes(artefact.message())
        except OSError as error:
            raise unusable_file_error(error) from None
        return name

    def _name(self, artefact: Artefact) -> str:
        parts = (artefact.kind, artefact.agency or "", artefact.id or "", artefact.version)
        # Names come from the message, so nothing of them may lead to another folder or be hidden.
        stem = "-".join(_SAFE.sub("_", part) for part in parts).lstrip(".")[:_LONGEST]
        suffix = ".json" if "json" in artefact.media_type else ".xml"
        name, number = f"{stem}{suffix}", 1
        while name.lower() in self._given:
            number += 1
            name = f"{stem}-{number}{suffix}"
        self._given.add(name.lower())
        return name


_HASH_SHOWN = 12


class ArtefactWriter(Protocol):
    """Shows what was found."""

    def artefact(self, artefact: Artefact, file: str | None) -> None:
        """One artefact, and the file that its message was written to."""

    def end(
        self, format_: Format | None, findings: Iterable[SplitWarning], error: StructureMessageError | None
    ) -> None:
        """What there is to say at the end; `error` where the message couldn't be gone through."""


def print_artefacts(
    stream: ByteStream, media_type: str | None, shown: ArtefactWriter, folder: Folder | None, *, validate: bool = False
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


class ArtefactLines:
    """A line for each artefact as it comes, its findings below it, and a last line that sums up."""

    def __init__(self) -> None:
        self._artefacts = 0
        self._bytes = 0

    def artefact(self, artefact: Artefact, file: str | None) -> None:
        if not self._artefacts:
            typer.echo(f"{'bytes':>12}  {'hash':<{_HASH_SHOWN}}  {'refers to':>9}  structure")
        self._artefacts += 1
        self._bytes += artefact.size
        name = artefact.urn or f"{artefact.kind} {artefact.id or 'without id'}, which has no URN"
        short = artefact.content_hash.hex()[:_HASH_SHOWN]
        typer.echo(f"{artefact.size:>12,}  {short}  {len(artefact.references):>9}  {printable(name)}")
        for finding in artefact.findings:
            typer.echo(f"{'':>12}  {printable(str(finding))}")

    def end(
        self, format_: Format | None, findings: Iterable[SplitWarning], error: StructureMessageError | None
    ) -> None:
        for finding in findings:
            where = "" if finding.offset is None else f" (byte {finding.offset:,})"
            typer.echo(f"{printable(str(finding))}{where}")
        if format_:
            artefacts = f"{self._artefacts:,} artefact{'' if self._artefacts == 1 else 's'}"
            typer.echo(f"{artefacts} with {self._bytes:,} bytes in {format_}")
        if error:
            typer.secho(f"error: {printable(str(error), limit=None)}", err=True, fg=typer.colors.RED)


class ArtefactJson:
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

    def end(
        self, format_: Format | None, findings: Iterable[SplitWarning], error: StructureMessageError | None
    ) -> None:
        document = {
            "format": format_,
            "media_type": format_.media_type if format_ else None,
            "artefacts": self._artefacts,
            "findings": [_finding(finding) for finding in findings],
            "error": error.as_dict() if error else None,
        }
        typer.echo(json.dumps(document, ensure_ascii=True, indent=2))


def _finding(finding: SplitWarning) -> dict[str, Any]:
    return {"code": finding.code, "message": finding.message, "offset": finding.offset}


app = typer.Typer(add_completion=False, no_args_is_help=True)

_FILE = typer.Argument(help="A structure message of SDMX-ML, SDMX-JSON or Fusion-JSON; - reads standard input.")


@app.callback()
def structures() -> None:
    """Show what structure messages of SDMX contain."""


@app.command("split")
def split_message(
    file: Annotated[Path, _FILE],
    *,
    to: Annotated[Path | None, typer.Option(help="Folder that gets a message for each artefact.")] = None,
    media_type: Annotated[str | None, typer.Option(help="Its media type, as the sender states it: a hint.")] = None,
    validate: Annotated[bool, typer.Option("--validate", help="Also check each artefact against its schema.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
) -> None:
    """Show the maintainable artefacts of a structure message: size, hash, number of references, URN.

    Every byte of an artefact stays as it is. Reported is what is odd: URNs that differ from what they should be,
    unknown kinds, text outside of artefacts. With --to each artefact is written in a complete message of its own. What
    --validate finds is reported and changes nothing: real registries send much that their schemas refuse.

    Exit codes: 0 the message was split to its end; 1 it is broken or no structure message; 2 there is no such file.
    """
    from contexture.operations.actions.check import opened

    with opened(file) as stream:
        shown = ArtefactJson() if as_json else ArtefactLines()
        is_whole = print_artefacts(stream, media_type, shown, Folder(to) if to else None, validate=validate)
    raise typer.Exit(exit_codes.OK if is_whole else exit_codes.INVALID)
