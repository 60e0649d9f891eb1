"""What pages of the documentation tell a reader to type, so that tests type the same."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

PAGES = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def block(page: str, containing: str) -> str:
    """The block of code on a page that has this text in it; there is exactly one."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = [dedent(match[3]) for match in _BLOCK.finditer(text) if containing in match[3]]
    assert len(found) == 1, f"{len(found)} blocks of {page} hold {containing!r}"
    return found[0]
