"""Text of strangers on a terminal."""

from __future__ import annotations

from typing import Final

_CHARACTERS: Final = 200


def printable(text: str, limit: int | None = _CHARACTERS) -> str:
    """A text on one line that does nothing to a terminal: escape and direction characters stand as their codes."""
    safe = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return safe if limit is None or len(safe) <= limit else f"{safe[: limit - 1]}…"
