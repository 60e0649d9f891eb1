"""Text of strangers on a terminal."""

from __future__ import annotations


def on_one_line(text: str) -> str:
    """Text that anybody may have written, on one line and without what a terminal would obey."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)
