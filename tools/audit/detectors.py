"""Which detectors of detect-secrets can find something in a text at all: each of them in each line takes a minute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import BasePlugin, RegexBasedDetector
from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString, HexHighEntropyString
from detect_secrets.plugins.keyword import DENYLIST, KeywordDetector

_READ_AS_THEY_ARE = frozenset({".py", ".md", ".json", ".jsonl", ".txt", ".html", ".j2", ".js", ".css", ".svg"})
"""In files of other kinds (YAML, say) the detectors see other lines than those that are written."""
_OTHERS = {
    KeywordDetector.__name__: (re.compile("|".join(DENYLIST), re.IGNORECASE),),
    # More than 3.0 and 4.5 bits a character take as many different ones.
    HexHighEntropyString.__name__: (re.compile(r"""(["'])[0-9a-fA-F]{9,}\1"""),),
    Base64HighEntropyString.__name__: (re.compile(r"""(["'])[A-Za-z0-9+/\\=_-]{23,}\1"""),),
}


def all_detectors() -> frozenset[str]:
    """Their names."""
    return frozenset(kind.__name__ for kind in _detectors())


def detectors_for(file: str, text: str) -> frozenset[str]:
    """Those that can find something in a file with this text.

    What tests call a password is made up; real ones among them are found by their form, or because they are random.
    """
    left_out = {KeywordDetector.__name__} if PurePath(file).parts[0] == "tests" else set()
    return _able(file, text) - left_out


def _detectors() -> list[type[BasePlugin]]:
    # The package gives this function no types.
    kinds: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return list(kinds.values())


def _able(file: str, text: str) -> frozenset[str]:
    if PurePath(file).suffix not in _READ_AS_THEY_ARE:
        return all_detectors()
    return frozenset(name for name, patterns in _patterns() if any(each.search(text) for each in patterns))


@cache
def _patterns() -> tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]:
    return tuple(sorted({**dict(_of_services()), **_OTHERS}.items()))


def _of_services() -> Iterator[tuple[str, tuple[re.Pattern[str], ...]]]:
    for kind in _detectors():
        if issubclass(kind, RegexBasedDetector):
            yield kind.__name__, tuple(_by_lines(kind().denylist))
        elif kind.__name__ not in _OTHERS:
            raise LookupError(f"detect-secrets has a new detector, {kind.__name__}: add to _OTHERS what it looks for")


def _by_lines(patterns: Iterable[re.Pattern[str]]) -> Iterator[re.Pattern[str]]:
    for pattern in patterns:
        yield re.compile(pattern.pattern, pattern.flags | re.MULTILINE)
