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
    """Returns the list that the document holds below `member`; empty lines and lines that begin with `#` don't count.

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
        raise _no_json(written, error) from None
    except ValueError:
        raise ConfigurationError("the file holds a number of thousands of digits", next_step="correct it") from None
    except RecursionError:
        raise ConfigurationError("the file is nested too deeply", next_step="correct it") from None


def _no_json(written: str, error: json.JSONDecodeError) -> ConfigurationError:
    """Returns what is wrong, where, and what to do about it, in the same words whatever Python's version."""
    comma = _needless_comma(written, error.pos)
    if comma is not None:
        found = json.JSONDecodeError("a comma without anything after it", written, comma)
        correction = "remove the comma before the closing bracket"
    else:
        found, correction = error, _correction(written, error)
    place = f"line {found.lineno}, column {found.colno}"
    return ConfigurationError(f"the file is not JSON: {found.msg} at {place}", next_step=correction)


def _needless_comma(written: str, at: int) -> int | None:
    # Python 3.13 reports the comma itself, its predecessors what comes after it.
    comma = at if written[at : at + 1] == "," else len(written[:at].rstrip()) - 1
    return comma if _TRAILING_COMMA.match(written, max(comma, 0)) else None


def _correction(written: str, error: json.JSONDecodeError) -> str:
    if "escape" in error.msg:
        return r"write \\ for each backslash of an expression, such as \\. for \."
    if _COMMENTS.match(written, error.pos):
        return "put the comment on a line of its own that begins with #"
    return "correct it there; JSON has its names and texts in double quotes"


def canonical(text: str, member: str) -> str:
    """Returns the document without comments and in one form, so that only its contents count.

    Raises:
        ConfigurationError: it is no JSON object with such a list, or a text of it is none that UTF-8 can hold.
    """
    form = json.dumps({member: parse(text, member)}, ensure_ascii=False, separators=(",", ":"))
    try:
        form.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"the file holds an incomplete character: \\u{ord(form[error.start]):04x}",
            next_step="write both halves, or the character itself",
        ) from None
    return form


def read(path: Path) -> str:
    """Returns the text of a file.

    Raises:
        ConfigurationError: it can't be read.
    """
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise ConfigurationError(f"{path.name} is larger than 1 MiB", next_step="split the publication")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path.name} cannot be read: {error.strerror}", next_step="write a path from this file's folder"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path.name} is not UTF-8 (byte {error.start})", next_step="save the file as UTF-8 text"
        ) from None
