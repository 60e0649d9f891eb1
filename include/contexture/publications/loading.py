"""From the bytes of one publication file to the publication, or to every problem in it with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from contexture.publications import documents
from contexture.publications.documents import Document, DocumentError, Span
from contexture.publications.findings import Finding, dotted
from contexture.publications.models import with_models
from contexture.publications.name_contents import with_name_files
from contexture.publications.notes import notes
from contexture.publications.problems import Problem, without_secrets
from contexture.publications.publication import Publication
from contexture.publications.validation import validate

_START = Span(1, 1)


def read(path: Path) -> tuple[Publication | None, tuple[Problem, ...]]:
    """The publication of a file and notes about it, or None and everything that is wrong with it."""
    try:
        text = _text(path)
    except DocumentError as error:
        return None, (_unplaced(path, error),)
    lines = text.splitlines()
    try:
        document = documents.parse(text)
    except DocumentError as error:
        return None, (_of_document(path, lines, error),)
    publication, findings = validate(document.value)
    publication, unread = with_models(document.value, publication, path.parent)
    publication, unnamed = with_name_files(document.value, publication, path.parent)
    findings = [*findings, *unread, *unnamed]
    errors = [_of_document(path, lines, error) for error in document.repeated]
    errors += [_placed(path, lines, document, finding) for finding in findings]
    if errors or publication is None:
        return None, tuple(sorted(errors, key=lambda problem: (problem.line, problem.column)))
    told = notes(document.value, publication)
    return publication, tuple(_placed(path, lines, document, note, severity="note") for note in told)


def place(path: Path, finding: Finding) -> Problem:
    """The finding as a problem of a file that was read before."""
    text = _text(path)
    return _placed(path, text.splitlines(), documents.parse(text), finding)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > documents.MAX_BYTES:
            limit = f"at most {documents.MAX_BYTES // 1024} KiB"
            raise DocumentError("the file is too large for a publication", f"expected {limit}", None)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(
            f"the file can't be read: {error.strerror}", "check the path and permissions", None
        ) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"byte {error.start} is not UTF-8", "save the file as UTF-8 text", None) from None


def _unplaced(path: Path, error: DocumentError) -> Problem:
    return Problem(path, 0, 0, 0, "", error.message, error.hint)


def _of_document(path: Path, lines: list[str], error: DocumentError) -> Problem:
    span = error.span or _START
    return Problem(
        path, span.line, span.column, span.length, "", error.message, error.hint, _source_line(lines, span.line)
    )


def _placed(
    path: Path,
    lines: list[str],
    document: Document,
    finding: Finding,
    *,
    severity: Literal["error", "note"] = "error",
) -> Problem:
    span = document.span(finding.location, of_key=finding.at_key) or _START
    return Problem(
        path=path,
        line=span.line,
        column=span.column,
        length=span.length,
        location=dotted(finding.location),
        message=without_secrets(finding.message),
        hint=finding.hint,
        source_line=_source_line(lines, span.line),
        severity=severity,
    )


def _source_line(lines: list[str], number: int) -> str:
    return without_secrets(lines[number - 1].rstrip()) if 0 < number <= len(lines) else ""
