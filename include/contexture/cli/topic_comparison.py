"""Reading two sides' topics and comparing what they tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contexture.cli.kafka_connections import settings_of
from contexture.importers.cygnus import Comparison, Side, compare
from contexture.kafka import ClientSettings, read_committed
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import Patience


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which topics are compared: those named on each side, or all that begin with a prefix."""

    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    prefix: str = ""

    @classmethod
    def given(cls, names: Sequence[str]) -> Pairs:
        """The topics of a command line: one name for both sides, or `LEFT=RIGHT`."""
        pairs = [name.partition("=") for name in names]
        return cls(tuple(one for one, _, _ in pairs), tuple(other or one for one, _, other in pairs))


@dataclass(frozen=True, slots=True)
class Compared:
    """What both sides hold, and how it differs.

    Attributes:
        only_left, only_right: topics that one side lacks.
        left, right: what was read.
        comparison: how it differs.
    """

    only_left: tuple[str, ...]
    only_right: tuple[str, ...]
    left: Side
    right: Side
    comparison: Comparison

    @property
    def alike(self) -> bool:
        """Whether both sides tell the same, in the same topics."""
        return self.comparison.alike and not (self.only_left or self.only_right)


def compare_sides(left: str, right: str, pairs: Pairs, *, timeout_seconds: float) -> Compared:
    """What the topics of two connections tell.

    Raises:
        ConfigurationError: a connection or a named topic isn't there.
        BrokersAwayError: brokers were silent for too long.
    """
    one, other = settings_of(left), settings_of(right)
    names = pairs.left, pairs.right
    if pairs.prefix:
        names = _listed(one, pairs.prefix, timeout_seconds), _listed(other, pairs.prefix, timeout_seconds)
    sides = _read(one, names[0], timeout_seconds), _read(other, names[1], timeout_seconds)
    alone = (set(names[0]) - set(names[1]), set(names[1]) - set(names[0])) if pairs.prefix else (set(), set())
    return Compared(tuple(sorted(alone[0])), tuple(sorted(alone[1])), *sides, compare(*sides))


def _listed(settings: ClientSettings, prefix: str, timeout_seconds: float) -> tuple[str, ...]:
    listed = TopicAdmin(settings, Patience(timeout_seconds)).listed()
    return tuple(sorted(name for name in listed if name.startswith(prefix)))


def _read(settings: ClientSettings, topics: Sequence[str], timeout_seconds: float) -> Side:
    side = Side()
    for record in read_committed(settings, topics, timeout_seconds=timeout_seconds) if topics else ():
        side.add(record.value)
    return side
