"""Comparing what two sets of topics tell: Cygnus' lines on one side, Contexture's on the other.

For each entity and attribute the newest value counts, by the line's own timestamp. What Cygnus can't keep apart from
chance is left out of the comparison: the order of attributes and metadata, timestamps, and `isPattern`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from contexture.events import canonical_json, parse_json

_DIGEST_BYTES = 16

Entity = tuple[str, str, str, str]
"""Service, service path, id and type."""


@dataclass(slots=True)
class Side:
    """What one side tells: for every entity and attribute when it was told, and a digest of it.

    Attributes:
        entities: attribute name to (timestamp in ms, digest), by entity.
        lines: how many were read.
        unreadable: values that hold no lines.
        tombstones: records without a value; they tell no line.
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
        entity, moment, attributes = _read(text)
        held = self.entities.setdefault(entity, {})
        for name, digest in attributes:
            if name not in held or held[name][0] <= moment:
                held[name] = moment, digest
        self.lines += 1


@dataclass(frozen=True, slots=True)
class Differing:
    """An entity of both sides, with the attributes that differ or that only one side tells."""

    entity: Entity
    differing: tuple[str, ...]
    only_left: tuple[str, ...]
    only_right: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two sides differ.

    Attributes:
        equal: entities that both sides tell alike.
        only_left, only_right: entities of one side.
        differing: entities of both sides that differ.
    """

    equal: int
    only_left: tuple[Entity, ...]
    only_right: tuple[Entity, ...]
    differing: tuple[Differing, ...]

    @property
    def alike(self) -> bool:
        """Whether both sides tell the same."""
        return not (self.only_left or self.only_right or self.differing)


def compare(left: Side, right: Side) -> Comparison:
    """How what two sides tell differs, entities in order."""
    both = sorted(left.entities.keys() & right.entities.keys())
    differing = [each for entity in both if (each := _difference(entity, left, right)) is not None]
    return Comparison(
        equal=len(both) - len(differing),
        only_left=tuple(sorted(left.entities.keys() - right.entities.keys())),
        only_right=tuple(sorted(right.entities.keys() - left.entities.keys())),
        differing=tuple(differing),
    )


def _difference(entity: Entity, left: Side, right: Side) -> Differing | None:
    one, other = left.entities[entity], right.entities[entity]
    found = Differing(
        entity,
        differing=tuple(sorted(name for name in one.keys() & other.keys() if one[name][1] != other[name][1])),
        only_left=tuple(sorted(one.keys() - other.keys())),
        only_right=tuple(sorted(other.keys() - one.keys())),
    )
    return found if found.differing or found.only_left or found.only_right else None


def _read(text: bytes) -> tuple[Entity, int, list[tuple[str, bytes]]]:
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
    told = [(str(item["name"]), _digest(item)) for item in _items(body["attributes"])]
    return (service, path, entity_id, entity_type), moment, told


def _digest(attribute: Mapping[str, object]) -> bytes:
    listed = attribute.get("metadatas")
    metadata = sorted(map(canonical_json, _items(listed))) if isinstance(listed, Iterable) else []
    told = canonical_json([attribute.get("type"), attribute.get("value")])
    return blake2b(b"\n".join((told, *metadata)), digest_size=_DIGEST_BYTES).digest()


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _items(value: object) -> Iterator[Mapping[str, object]]:
    if not isinstance(value, list):
        raise TypeError
    return map(_object, value)
