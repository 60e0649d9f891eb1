"""Words that readers of English stumble over are refused in the product, its documentation and its tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
PRODUCT = ("include", "plugins", "spark_jobs", "dags", "deploy", "docs", "tools")
TESTS = ("tests",)
KINDS = (".py", ".md", ".yaml", ".yml", ".toml", ".html", ".jinja", ".css", ".js", ".sh")
# History, what others wrote, what commands print into the documentation, and these words themselves.
LEFT_OUT = ("docs/decisions/", "tests/samples/", "tests/unit/test_words.py")
WORDS = {
    "tell, told": re.compile(r"\b(un)?(tells?|told|telling)\b"),
    "stands, stood": re.compile(r"\b(stands|stood|standing|standings)\b"),
    "whoever, somebody, nobody": re.compile(r"\b(whoever|whomever|somebody|nobody|anybody)\b"),
    "in vain": re.compile(r"\bin vain\b"),
    "mend": re.compile(r"\b(mends?|mended|mending)\b"),
    "put aside": re.compile(r"\b(puts?|putting|sets?|setting) aside\b"),
    "is meant": re.compile(r"\b(is|are) meant\b"),
    "for it (because)": re.compile(
        r", for (it|they|there|he|she|we|this|that) (is|are|was|were|may|can|would|has|have)\b"
    ),
}
POSITION = re.compile(r"\bstream\.tell\(\)")
"""Python's own name for the position of a stream, which has no other; it is left out of what is counted."""
WRITTEN = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
"""Where an identifier is split into words."""


def files(places: tuple[str, ...]) -> Iterator[Path]:
    found = [path for place in places for path in (PROJECT / place).rglob("*")]
    if places == PRODUCT:
        found += [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]
    for path in sorted(found):
        name = path.relative_to(PROJECT).as_posix()
        if path.suffix in KINDS and path.is_file() and not name.startswith(LEFT_OUT):
            yield path


def refused(places: tuple[str, ...]) -> list[str]:
    """Returns path, line and refused word of each place that has one."""
    found = []
    for path in files(places):
        text = POSITION.sub(" ", WRITTEN.sub(" ", path.read_text())).lower()
        for name, word in WORDS.items():
            lines = (text.count("\n", 0, match.start()) + 1 for match in word.finditer(text))
            found += [f"{path.relative_to(PROJECT)}:{line}: {name}" for line in lines]
    return found


@pytest.mark.parametrize("places", [PRODUCT, TESTS], ids=["product", "tests"])
def test_no_refused_word_is_written(places: tuple[str, ...]) -> None:
    assert refused(places) == []
