r"""A file of Java properties, read as `java.util.Properties.load` reads it.

`#` and `!` begin a comment, an odd number of backslashes at a line's end continues it on the next one (whose leading
white space is dropped), `\uXXXX` is a UTF-16 unit, `\t`, `\n`, `\f` and `\r` are themselves, and a backslash before
anything else is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from contexture.errors import ConfigurationError

_BLANK = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_UNIT = re.compile(r"u[0-9A-Fa-f]{4}")
_LETTERS = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass(frozen=True, slots=True)
class JavaProperty:
    """One property: key, value, and the number of the line it begins on, counted from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[JavaProperty]:
    r"""Parses the properties of a file, in its order; one that is there twice is returned twice.

    Raises:
        ConfigurationError: `\u` isn't followed by four hexadecimal digits.
    """
    return [_property(line, number) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(_LINE_ENDS.split(text), start=1):
        line = natural.lstrip(_BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            # A backslash alone begins nothing: the next line may be blank, or a comment.
            parts += [line[:-1]] if parts or line != "\\" else []
        else:
            yield first, "".join((*parts, line))
            parts = []
    if parts:
        yield first, "".join(parts)


def _property(line: str, number: int) -> JavaProperty:
    match = _KEY.match(line)
    # The pattern matches everything, also nothing.
    key, rest = (match[1], line[match.end() :]) if match else (line, "")
    return JavaProperty(_unescaped(key, number), _unescaped(rest, number), number)


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] != "u":
            return _LETTERS.get(escape, escape)
        if not _UNIT.fullmatch(escape):
            raise ConfigurationError(
                f"line {line}: \\u is not followed by four hexadecimal digits", next_step="correct the escape"
            )
        return chr(int(escape[1:], 16))

    units = _ESCAPE.sub(replaced, text)
    # Two escapes may be the halves of one character.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}", next_step="check the path") from None


def decode_properties(content: bytes) -> str:
    """Returns the text of a properties file: UTF-8, else Latin-1."""
    # Flume reads its file in the platform's encoding; Java's own for properties is Latin-1, which fits every byte.
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
