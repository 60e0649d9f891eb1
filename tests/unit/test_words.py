"""Words that readers of English stumble over become fewer, and none is added.

The numbers are limits, lowered with each part that is rewritten; where all are zero, this file refuses the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

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


def counted(places: tuple[str, ...]) -> dict[str, int]:
    found = Counter[str](dict.fromkeys(WORDS, 0))
    for path in files(places):
        text = WRITTEN.sub(" ", path.read_text()).lower()
        found.update({name: len(word.findall(text)) for name, word in WORDS.items()})
    return dict(found)


def exceeded(places: tuple[str, ...], limits: dict[str, int]) -> dict[str, int]:
    """The words that are counted more often than their limit; a word without a limit may not occur at all."""
    return {word: count for word, count in counted(places).items() if count > limits.get(word, 0)}


def test_refused_words_of_product_tools_and_documentation_become_fewer() -> None:
    limits = {
        "tell, told": 2,
        "stands, stood": 1,
    }

    assert exceeded(PRODUCT, limits) == {}


def test_refused_words_of_tests_become_fewer() -> None:
    limits = {
        "tell, told": 69,
        "stands, stood": 6,
        "whoever, somebody, nobody": 8,
    }

    assert exceeded(TESTS, limits) == {}
