"""Standard output, whatever its encoding is and whatever lies behind it."""

from __future__ import annotations

import codecs
import json
import os
import sys
from io import TextIOWrapper
from typing import Final

_ESCAPED: Final = "contexture.escaped"


def show_every_text() -> None:
    """From now on a character that an encoding lacks stands as its code, as JSON has it, and raises no error."""
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
        OSError: nobody takes it.
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
