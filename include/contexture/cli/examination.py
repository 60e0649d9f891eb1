"""What `contexture doctor` found, point by point, and how its points are gone through."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from contexture.errors import ContextureError
from contexture.storage.manifests import Document

Verdict = Literal["good", "doubtful", "bad", "not looked at"]


@dataclass(frozen=True, slots=True)
class Found:
    """One point.

    Attributes:
        verdict: `doubtful` works, but not as it should; `bad` stops runs.
        detail: what is there, without secrets.
        remedy: what to do; empty where nothing need be done.
    """

    verdict: Verdict
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """Something to look at."""

    name: str
    look: Callable[[], Found]


class Examined(Document):
    """A point that was looked at, and the seconds it took."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str
    seconds: float


class Examination(Document):
    """All points, in order."""

    points: tuple[Examined, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing that was found stops runs."""
        return not any(point.verdict == "bad" for point in self.points)


def examine(points: Iterable[Point]) -> Iterator[Examined]:
    """Looks at one point after the other; an error of ours is a bad one, with its next step as the remedy."""
    for point in points:
        started = time.monotonic()
        found = _looked(point)
        yield Examined(
            name=point.name,
            verdict=found.verdict,
            detail=found.detail,
            remedy=found.remedy,
            seconds=time.monotonic() - started,
        )


def _looked(point: Point) -> Found:
    try:
        return point.look()
    except ContextureError as error:
        return Found("bad", error.message, error.next_step)
