"""Versions of structures: their order, and what a query means by one."""

from __future__ import annotations

import re

from contexture.sdmx.urns import DEFAULT_VERSION

ALL, LATEST, LATEST_STABLE = "*", "~", "+"
_NUMBERS = re.compile(r"\d+")
_EXTENSION = re.compile(r"-.+$")

Rank = tuple[tuple[int, ...], bool]


def rank(version: str) -> Rank:
    """What versions are ordered by: their numbers, and a stable one after its drafts."""
    stable = not _EXTENSION.search(version)
    numbers = [int(number) for number in _NUMBERS.findall(_EXTENSION.sub("", version))]
    return tuple([*numbers, 0, 0, 0][:3]) if len(numbers) <= 3 else tuple(numbers), stable


def chosen(asked: str, there: list[str]) -> list[str]:
    """Those of the versions of one structure that are asked for.

    Args:
        asked: `*` all, `~` the latest, `+` the latest stable one, `1.2`, or `1.2+` and `1.2+.0` for the latest from
            there on that is compatible with it.
        there: versions of one structure.
    """
    if asked == ALL:
        return there
    if asked == LATEST:
        return _latest(there)
    if asked == LATEST_STABLE:
        return _latest([version for version in there if rank(version)[1]])
    if "+" in asked:
        return _latest([version for version in there if _compatible(asked, version)])
    return [version for version in there if version == (asked or DEFAULT_VERSION)]


def _latest(there: list[str]) -> list[str]:
    return [max(there, key=rank)] if there else []


def _compatible(asked: str, version: str) -> bool:
    """Whether it is at or above the one asked for, and the same in what stands before the `+`."""
    fixed = _NUMBERS.findall(asked.partition("+")[0])[:-1]
    own = _NUMBERS.findall(version)
    return own[: len(fixed)] == fixed and rank(version) >= rank(asked.replace("+", "")) and rank(version)[1]
