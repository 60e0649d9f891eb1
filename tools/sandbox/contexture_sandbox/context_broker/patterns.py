"""POSIX extended regular expressions, as a broker's database takes them: unanchored, without look-around."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {
    "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:alnum:]": "a-zA-Z0-9", "[:upper:]": "A-Z", "[:lower:]": "a-z",
    "[:space:]": r"\s", "[:punct:]": r"!-/:-@\[-`{-~", "[:xdigit:]": "0-9A-Fa-f",
}  # fmt: skip


@lru_cache(maxsize=512)
def posix_pattern(text: str) -> re.Pattern[str] | None:
    """The pattern, to be used with `search`; None when it is invalid, which to a broker means: matches nothing."""
    if "(?" in text:
        return None
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    try:
        return re.compile(text)
    except re.error:
        return None
