"""The files of grouping rules and name mappings: JSON with comment lines, as Cygnus reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from contexture.errors import ConfigurationError

MAXIMUM_BYTES = 1024 * 1024

# Those of Java's readers; other ends of lines may stand inside of a JSON text.
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_TRAILING_COMMA = re.compile(r",\s*[\]}]")
_COMMENTS = re.compile(r"\s*(?://|/\*|#)")


def parse(text: str, member: str) -> list[object]:
    """The list that the document holds below `member`; empty lines and lines that begin with `#` don't count.

    Raises:
        ConfigurationError: it is no JSON object with such a list.
    """
    document = _document(text)
    listed = document.get(member) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ConfigurationError(
            f"the file holds no list {member!r}", next_step=f'write {{"{member}": [...]}}, as for Cygnus'
        )
    return listed


def _document(text: str) -> object:
    # Comments stay as empty lines, so that the place of an error is that of the file.
    lines = ["" if line.lstrip().startswith("#") else line for line in _LINE_ENDS.split(text)]
    written = "\n".join(lines)
    try:
        return json.loads(written)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigurationError(
            f"the file is no JSON: {error.msg} at {where}", next_step=_correction(written, error)
        ) from None
    except RecursionError:
        raise ConfigurationError("the file is nested too deeply", next_step="correct it") from None


def _correction(written: str, error: json.JSONDecodeError) -> str:
    """What to do about an error."""
    at = error.pos
    if "escape" in error.msg:
        return r"write \\ for each backslash of an expression, such as \\. for \."
    before = written[:at].rstrip()
    # Python tells a comma too many at the comma or after it, by its version.
    comma = at if written[at : at + 1] == "," else len(before) - 1
    if _TRAILING_COMMA.match(written, max(comma, 0)):
        return "remove the comma before the closing bracket"
    if _COMMENTS.match(written, at):
        return "put the comment on a line of its own that begins with #"
    return "correct it there; JSON has its names and texts in double quotes"


def canonical(text: str, member: str) -> str:
    """The document without comments and in one form, so that only its contents count.

    Raises:
        ConfigurationError: it is no JSON object with such a list, or a text of it is none that UTF-8 can hold.
    """
    form = json.dumps({member: parse(text, member)}, ensure_ascii=False, separators=(",", ":"))
    try:
        form.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"the file holds half of a character: \\u{ord(form[error.start]):04x}",
            next_step="write both halves, or the character itself",
        ) from None
    return form


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        ConfigurationError: it can't be read.
    """
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ConfigurationError(f"{path.name} is larger than 1 MiB", next_step="split the publication")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} can't be read: {error.strerror}", next_step="write a path from this file's folder"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path.name} is not UTF-8 (byte {error.start})", next_step="save the file as UTF-8 text"
        ) from None
