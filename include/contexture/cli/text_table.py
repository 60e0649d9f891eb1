"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]) -> Text:
    """Rows in columns as wide as they need to be, each row in its style.

    Lines of text rather than a rich table, which would cut columns where a terminal is narrow or there is none.
    """
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = Text()
    for line, style in zip(lines, ["dim", *styles], strict=True):
        text.append("  ".join(map(str.ljust, line, widths)).rstrip() + "\n", style=style)
    return text
