"""What the pages instruct a reader to type, so that tests type the same.

`block(page, containing)` is how a test takes a block from a page. Both are literals there, or constants of the module:
`tests/unit/documentation/test_inventory.py` finds by them which blocks are run, and by which test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

PROJECT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_NOTE = re.compile(r"\s*\*Not run by a test: ([^*]+)\.\*$", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d,.]*")
_FRAME = re.compile(r"[\u2500-\u257f]")
_SHELLS = frozenset({"", "sh", "bash", "shell", "console"})


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: relative to docs/, or to the project for what lies beside it.
        line: of its fence, counted from 1.
        language: as the fence says, empty where it says none.
        text: what is in it, without the indent that all lines share.
        not_run: why no test runs it, where the page says so below it.
    """

    page: str
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def is_for_a_shell(self) -> bool:
        """Whether a reader may paste it into a terminal: a block without a language, or with a shell's."""
        return self.language in _SHELLS


def pages() -> list[str]:
    """All pages, as `block` wants them named."""
    docs = PROJECT / "docs"
    beside = [*PROJECT.glob("*.md"), *(PROJECT / "deploy").rglob("*.md"), *(PROJECT / "plugins").rglob("*.md")]
    return sorted(
        [
            *(str(path.relative_to(docs)) for path in docs.rglob("*.md")),
            *(str(path.relative_to(PROJECT)) for path in beside),
        ]
    )


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, from top to bottom."""
    path = PROJECT / "docs" / page
    text = (path if path.is_file() else PROJECT / page).read_text(encoding="utf-8")
    for match in _FENCED.finditer(text):
        note = _NOTE.match(text, match.end())
        reason = " ".join(note[1].split()) if note else None
        yield Block(page, text.count("\n", 0, match.start()) + 1, match[2], dedent(match[3]), reason)


def block(page: str, containing: str) -> str:
    """The text of the block on a page that has this text in it; there is exactly one."""
    found = [each.text for each in blocks(page) if containing in each.text]
    assert len(found) == 1, f"{len(found)} blocks of {page} hold {containing!r}"
    return found[0]


def lines_not_printed(shown: str, printed: str) -> list[str]:
    """Returns the lines of a page's output that a command has not printed.

    Numbers, frames of tables and the width of blanks may differ; `…` in a line is anything.
    """
    found = _comparable(printed)
    return [line for line in shown.splitlines() if line.strip() and not _pattern(line).search(found)]


def _comparable(text: str) -> str:
    return " ".join(_NUMBER.sub("0", _FRAME.sub(" ", text)).split())


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*?".join(re.escape(_comparable(part)) for part in line.split("…")))
