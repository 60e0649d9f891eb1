"""How-to pages have the form of a task, and the documentation stays short enough to be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builders.pages import PROJECT

HOW_TO = sorted((PROJECT / "docs" / "how-to").glob("*.md"))
VERBS = {
    "Add",
    "Change",
    "Check",
    "Connect",
    "Find",
    "Get",
    "Inspect",
    "Install",
    "Move",
    "Publish",
    "Read",
    "Receive",
    "Recover",
    "Replay",
    "Report",
    "Run",
    "Select",
    "Send",
    "Set",
    "Show",
    "Split",
    "Test",
    "Upgrade",
    "Use",
    "Validate",
    "Verify",
}
LIMIT_OF_WORDS = 40_000
"""For README, CONTRIBUTING and docs without decisions and without the list of messages."""
LIMIT_OF_HOW_TO_WORDS = 18_000
HISTORY = PROJECT / "docs" / "decisions"
MESSAGES = PROJECT / "docs" / "reference" / "messages.md"
"""Generated from the code, to search in: it is as long as the product has messages, and no task requires reading it."""


def words(pages: list[Path]) -> int:
    """The number of words in pages. A word has a letter or a digit, so the bars of tables do not count."""
    texts = (path.read_text(encoding="utf-8") for path in pages)
    return sum(bool(re.search(r"\w", each)) for text in texts for each in text.split())


def test_there_are_how_to_pages() -> None:
    assert len(HOW_TO) > 30


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_a_how_to_title_is_a_task(page: Path) -> None:
    title = page.read_text(encoding="utf-8").partition("\n")[0]
    assert title.startswith("# ")
    assert title.split()[1] in VERBS


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_a_how_to_page_begins_with_its_result(page: Path) -> None:
    _, _, text = page.read_text(encoding="utf-8").partition("\n\n")
    assert text.startswith("At the end "), "begin with a paragraph about what the reader has at the end"


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_headings_code_and_tables_are_enough_for_the_task(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^ *(```|\|---|\d\. )", text, re.MULTILINE), "give the task as steps, code or a table"
    paragraphs = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL).split("\n\n")
    prose = [each for each in paragraphs if not re.match(r" *(\||#|\d+\. |\*\*|!\[|\*Not run)", each)]
    assert max(len(each.split()) for each in prose) <= 80, "put exceptions into a table, reasons into a decision"


def test_how_to_pages_stay_short() -> None:
    assert words(HOW_TO) <= LIMIT_OF_HOW_TO_WORDS


def test_the_documentation_stays_short() -> None:
    pages = [path for path in (PROJECT / "docs").rglob("*.md") if not path.is_relative_to(HISTORY) and path != MESSAGES]
    assert words([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *pages]) <= LIMIT_OF_WORDS
