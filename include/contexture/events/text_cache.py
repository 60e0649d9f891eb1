"""A cache by text, such as names of attributes, within bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST_CHARACTERS = 512
"""Repeated names are shorter; untrusted input could fill the memory by thousands of megabytes each."""

Found = TypeVar("Found")


def cache_by_text(size: int) -> Callable[[Callable[[str], Found]], Callable[[str], Found]]:
    """Returns a decorator: the last `size` results for short texts are kept, those for long ones are not."""

    def decorated(function: Callable[[str], Found]) -> Callable[[str], Found]:
        kept = lru_cache(size)(function)

        @wraps(function)
        def cached(text: str) -> Found:
            return kept(text) if len(text) <= LONGEST_CHARACTERS else function(text)

        return cached

    return decorated
