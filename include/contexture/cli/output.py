"""What commands share for printing: standard output that takes every text, printable data, progress, times."""

from __future__ import annotations

import codecs
import json
import os
import sys
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Final

import typer

from contexture.errors import ConfigurationError

_ESCAPED: Final = "contexture.escaped"


def escape_unencodable() -> None:
    """From now on a character that an encoding lacks is written as its code, as in JSON, and raises no error."""
    codecs.register_error(_ESCAPED, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)


def colour() -> bool | None:
    """False where the environment wants none (NO_COLOR); None: as the terminal can."""
    return False if os.environ.get("NO_COLOR") else None


def flush() -> None:
    """Writes what is left; what can't be written is an error now, and not a complaint of Python at its end.

    Raises:
        OSError: the reader is gone.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try it again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


_CHARACTERS: Final = 200


def printable(text: str, limit: int | None = _CHARACTERS) -> str:
    """Returns a text on one line that does nothing to a terminal: escape and direction characters as their codes."""
    safe = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return safe if limit is None or len(safe) <= limit else f"{safe[: limit - 1]}…"


FORMATS: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]
"""How a time may be written: also as our own output has it."""


def time_span(since: datetime | None, until: datetime | None) -> tuple[datetime | None, datetime | None]:
    """What `--since` and `--until` say, with their zone.

    Raises:
        ConfigurationError: no time is between them.
    """
    if since is not None and until is not None and since >= until:
        raise ConfigurationError("--since is not before --until", next_step="swap them")
    return _in_utc(since), _in_utc(until)


def _in_utc(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(tzinfo=UTC)


def print_progress(sentence: str) -> None:
    """Prints a sentence about the progress to standard error."""
    typer.echo(sentence, err=True)
