"""Comparing the topics of Cygnus and of Contexture: which records are equal, and how others differ.

For each entity and attribute the newest value counts, by the line's own timestamp. What Cygnus can't keep apart from
chance is left out of the comparison: the order of attributes and metadata, timestamps, and `isPattern`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from contexture.events import canonical_json, parse_json
from contexture.kafka import ClientSettings, read_committed
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.operations.actions.connection_check import settings_of

_DIGEST_BYTES = 16

Entity = tuple[str, str, str, str]
"""Service, service path, id and type."""


@dataclass(slots=True)
class TopicContents:
    """What one side contains: for every entity and attribute its latest time and a digest.

    Attributes:
        entities: attribute name to (timestamp in ms, digest), by entity.
        lines: how many were read.
        unreadable: values that hold no lines.
        tombstones: records without a value, which have no line.
    """

    entities: dict[Entity, dict[str, tuple[int, bytes]]] = field(default_factory=dict)
    lines: int = 0
    unreadable: int = 0
    tombstones: int = 0

    def add(self, value: bytes | None) -> None:
        """Takes in a record's value."""
        if value is None:
            self.tombstones += 1
            return
        for text in value.split(b"\n"):
            try:
                self._add_line(text)
            except (ValueError, TypeError, KeyError, AttributeError):
                self.unreadable += 1

    def _add_line(self, text: bytes) -> None:
        entity, moment, attributes = _read_record(text)
        held = self.entities.setdefault(entity, {})
        for name, digest in attributes:
            if name not in held or held[name][0] <= moment:
                held[name] = moment, digest
        self.lines += 1


@dataclass(frozen=True, slots=True)
class Differing:
    """An entity of both sides, with the attributes that differ or that only one side has."""

    entity: Entity
    differing: tuple[str, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicComparison:
    """How two sides differ.

    Attributes:
        equal: entities that are equal on both sides.
        only_left, only_right: entities of one side.
        differing: entities of both sides that differ.
    """

    equal: int
    only_left: tuple[Entity, ...]
    only_right: tuple[Entity, ...]
    differing: tuple[Differing, ...]

    @property
    def are_equal(self) -> bool:
        return not (self.only_left or self.only_right or self.differing)


def compare(left: TopicContents, right: TopicContents) -> TopicComparison:
    """The differences of two sides, entities in order."""
    both = sorted(left.entities.keys() & right.entities.keys())
    differing = [each for entity in both if (each := _difference(entity, left, right)) is not None]
    return TopicComparison(
        equal=len(both) - len(differing),
        only_left=tuple(sorted(left.entities.keys() - right.entities.keys())),
        only_right=tuple(sorted(right.entities.keys() - left.entities.keys())),
        differing=tuple(differing),
    )


def _difference(entity: Entity, left: TopicContents, right: TopicContents) -> Differing | None:
    one, other = left.entities[entity], right.entities[entity]
    found = Differing(
        entity,
        differing=tuple(sorted(name for name in one.keys() & other.keys() if one[name][1] != other[name][1])),
        only_left=tuple(sorted(one.keys() - other.keys())),
        only_right=tuple(sorted(other.keys() - one.keys())),
    )
    return found if found.differing or found.only_left or found.only_right else None


def _read_record(text: bytes) -> tuple[Entity, int, list[tuple[str, bytes]]]:
    line = _object(parse_json(text))
    headers: dict[str, object] = {}
    for header in _items(line["headers"]):
        headers.update(header)
    body = _object(line["body"])
    names = (headers["fiware-service"], headers["fiware-servicePath"], body.get("id", ""), body.get("type", ""))
    service, path, entity_id, entity_type = map(str, names)
    moment = headers["timestamp"]
    if not isinstance(moment, int):
        raise TypeError
    attributes = [(str(item["name"]), _digest(item)) for item in _items(body["attributes"])]
    return (service, path, entity_id, entity_type), moment, attributes


def _digest(attribute: Mapping[str, object]) -> bytes:
    listed = attribute.get("metadatas")
    metadata = sorted(map(canonical_json, _items(listed))) if isinstance(listed, Iterable) else []
    content = canonical_json([attribute.get("type"), attribute.get("value")])
    return blake2b(b"\n".join((content, *metadata)), digest_size=_DIGEST_BYTES).digest()


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _items(value: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(value, list):
        raise TypeError
    return map(_object, value)


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
    left: TopicContents
    right: TopicContents
    comparison: TopicComparison

    @property
    def are_equal(self) -> bool:
        """Whether both sides are equal, in the same topics."""
        return self.comparison.are_equal and not (self.only_left or self.only_right)


def compare_sides(left: str, right: str, pairs: Pairs, *, timeout_seconds: float) -> Compared:
    """The contents of the topics of two connections.

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
    listed = TopicAdmin(settings, BrokerWait(timeout_seconds)).listed()
    return tuple(sorted(name for name in listed if name.startswith(prefix)))


def _read(settings: ClientSettings, topics: Sequence[str], timeout_seconds: float) -> TopicContents:
    side = TopicContents()
    for record in read_committed(settings, topics, timeout_seconds=timeout_seconds) if topics else ():
        side.add(record.value)
    return side
