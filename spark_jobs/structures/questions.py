"""What the tasks of a pull are asked, and what they tell: small values that cross Spark in place of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from contexture.sources.sdmx.registry import Query

ROW_BITS = 24
"""Rows of one question that an ordinal has room for: 2 to the power of this."""

What = Literal["landed", "other", "there", "gone", "inexpressible", "file"]
"""What a task tells.

- `landed`: this structure is in the task's file.
- `other`: a reply held this one too, which was not wanted.
- `there`, `gone`: the registry holds this one, or says that it doesn't.
- `inexpressible`: it holds this one, and the format can't express it.
- `file`: the name of a file, its rows (`number`) and its SHA-256 (`detail`).
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of an answer stand in landing.

    Attributes:
        number: of the question; the upper part of its rows' ordinals.
        transaction, at: id and time of the registry's transaction that they are told by.
    """

    number: int
    transaction: int | None = None
    at: datetime | None = None

    def ordinal(self, row: int = 0) -> int:
        """Of a row within the answer."""
        return (self.number << ROW_BITS) + row


@dataclass(frozen=True, slots=True)
class Many:
    """A bounded question whose answer holds many structures; those that are wanted are landed."""

    place: Place
    query: Query


@dataclass(frozen=True, slots=True)
class One:
    """A question about one structure.

    Attributes:
        as_of: the moment it is wanted of; None: as it is now.
        lands: False asks only whether it is there.
    """

    place: Place
    urn: str
    as_of: datetime | None = None
    lands: bool = True


Question = Many | One


@dataclass(frozen=True, slots=True)
class Share:
    """What one task asks, one question after the other, and the name of the file that it writes."""

    file: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a task tells; `number` is that of the question, except for files."""

    what: What
    urn: str = ""
    number: int = 0
    detail: str | None = None


def shared_out(questions: Sequence[Question], readers: int, names: Sequence[str]) -> tuple[Share, ...]:
    """The questions dealt out to as many tasks as may read at once, in turn, so that long answers meet short ones."""
    tasks = min(readers, len(questions))
    return tuple(Share(names[task], tuple(questions[task::tasks])) for task in range(tasks))
