"""A registry in memory that answers wrongly at random, while others write to it and its health probe is green."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random

from builders.registry import urn
from contexture.errors import RetriableError
from contexture.sources.sdmx.registry import Log, NotExpressible, NotModified, Reply, StructureEntry, StructureQuery
from fakes.structure_registry import FakeRegistry

_AGENCIES = ("X", "Y")


class UnreliableRegistry(FakeRegistry):
    """Up to twelve code lists of two agencies; of two answers in succession one is true.

    A false answer is a list, a log or a message that lacks something, a structure that is said not to be there, or the
    word that nothing changed.

    Args:
        random: makes every choice, so that a seed repeats a whole pull.
        has_log: what it offers.
        writes: how likely something is written after an answer.

    Attributes:
        stayed: URNs of what was there since the pull began.
        false_answers: how many there were.
    """

    def __init__(self, random: Random, *, has_log: bool, writes: float) -> None:
        super().__init__(has_log=has_log)
        self._random, self._writing = random, writes
        self._was_false = True
        self._is_read = False
        self.stayed: set[str] = set()
        self.false_answers = 0
        self._names = [urn(f"C{number}", agency=_AGENCIES[number % 2]) for number in range(12)]
        for _ in range(random.randint(1, 12)):
            self.write()

    def begin(self) -> None:
        """From now on answers may be false."""
        self.stayed, self._is_read = set(self.now), True

    def write(self) -> None:
        """Adds, changes or deletes a structure; one always stays."""
        name = self._random.choice(self._names)
        if name in self.now and len(self.now) > 1 and self._random.random() < 0.3:
            self.submit(delete=[name])
            self.stayed.discard(name)
        else:
            self.submit({name: (f"V{len(self.log)}",)})
        self.modified = f"change {len(self.log)}"

    def list_structures(self, media_type: str | None = None) -> StructureEntry:
        held = super().list_structures(media_type)
        if self._is_false():
            some = tuple(name for name in held.urns if self._random.random() < 0.6)
            if not some:
                raise RetriableError("an empty list", next_step="wait")
            held = replace(held, urns=some)
        return held

    def unchanged_since(self, last_modified: str) -> bool:
        return super().unchanged_since(last_modified) or self._is_false()

    def read(
        self, query: StructureQuery, media_type: str, into: Path, *, unless_modified_since: str | None = None
    ) -> Reply | NotModified | NotExpressible | None:
        if self._is_false():
            self.withheld = {name for name in self.now if self._random.random() < 0.6}
        reply = super().read(query, media_type, into, unless_modified_since=unless_modified_since)
        self.withheld = set()
        return reply

    def read_one(
        self, urn: str, media_type: str, into: Path, *, as_of: datetime | None = None
    ) -> Reply | NotExpressible | None:
        return None if self._is_false() else super().read_one(urn, media_type, into, as_of=as_of)

    def transactions(self, after: int | None) -> Log:
        log = super().transactions(after)
        if not self._is_false():
            return log
        kept: Sequence[object] = log.transactions[: self._random.randint(0, len(log.transactions))]
        newest = self._random.randint(after or 0, log.newest) if after is None else (after + len(kept))
        return replace(log, newest=newest, transactions=log.transactions[: len(kept)])

    def _is_false(self) -> bool:
        """Decides about the answer that is given next; something may be written before it."""
        if not self._is_read:
            return False
        while self._random.random() < self._writing:
            self.write()
        self._was_false = not self._was_false and self._random.random() < 0.5
        self.false_answers += self._was_false
        return self._was_false
