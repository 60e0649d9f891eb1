"""The inputs of a target, one after the other: what it starts from as it is, then changes of what was worth keeping."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

from tools.fuzz.documents import DOCUMENTS, Drawing
from tools.fuzz.mutation import Mutator
from tools.fuzz.target import Target

KEPT = 400
"""Inputs that are changed further; each went another way through the parser than those before it."""
_DRAWN_SHARE = 0.2


class Feeding:
    """Makes inputs by chance; the same seed and the same answers give the same inputs.

    Args:
        target: what is fed.
        seed: of the chance.
        after: skips that many of the inputs it starts from, which a run before this one has tried.
    """

    def __init__(self, target: Target, seed: str, *, after: int = 0) -> None:
        self._random = Random(f"{seed} {target.name}")
        self._mutator = Mutator(self._random, target.family, target.words)
        self._drawing = Drawing(DOCUMENTS[target.name]) if target.name in DOCUMENTS else None
        self._kept = list(target.inputs().values())
        self._waiting: Iterator[bytes] = iter(self._kept[after:])
        self._ways: set[object] = set()

    def next(self) -> bytes:
        """The next input."""
        if (first := next(self._waiting, None)) is not None:
            return first
        if self._drawing is not None and self._random.random() < _DRAWN_SHARE:
            return self._drawing.drawn(self._random)
        return self._mutator.mutated(self._random.choice(self._kept), self._random.choice(self._kept))

    def went(self, data: bytes, way: object) -> None:
        """Keeps an input that went a new way."""
        if way not in self._ways and len(self._kept) < KEPT:
            self._ways.add(way)
            self._kept.append(data)


def smallest(data: bytes, is_same: Callable[[bytes], bool], tries: int = 300) -> bytes:
    """A smaller input with the same fault: parts are left out as long as it stays."""
    step = max(1, len(data) // 2)
    while step and tries:
        at, shrunk = 0, False
        while at < len(data) and tries:
            tries -= 1
            without = data[:at] + data[at + step :]
            if is_same(without):
                data, shrunk = without, True
            else:
                at += step
        step = step if shrunk and step <= len(data) else step // 2
    return data


def printable(data: bytes, limit: int = 120) -> str:
    """The beginning of an input on one line."""
    return json.dumps(data[:limit].decode("latin-1"))[1:-1] + ("…" if len(data) > limit else "")
