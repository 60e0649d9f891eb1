"""A cache by text, such as names of attributes, within bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST_CHARACTERS = 512
"""Names that come back are shorter; a stranger's could fill the memory by thousands of megabytes each."""

Found = TypeVar("Found")


def cache_by_text(size: int) -> Callable[[Callable[[str], Found]], Callable[[str], Found]]:
    """A decorator: the last `size` results for short texts are kept, those for long ones are not."""

    def decorated(function: Callable[[str], Found]) -> Callable[[str], Found]:
        kept = lru_cache(size)(function)

        @wraps(function)
        def asked(text: str) -> Found:
            return kept(text) if len(text) <= LONGEST_CHARACTERS else function(text)

        return asked

    return decorated
