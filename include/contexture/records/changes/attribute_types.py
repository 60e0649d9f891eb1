"""The NGSI types that attributes have: those of earlier runs, and those of one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

MOST = 50_000
"""The largest number of types; with more, attributes are named after data, and the table would grow with that."""


class AttributeType(NamedTuple):
    entity_type: str
    attribute: str
    kind: str


_Types = Mapping[tuple[str, str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class AttributeTypes:
    """Types by entity type and attribute."""

    types: _Types = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Iterable[AttributeType]) -> AttributeTypes:
        """Returns the types that were seen; none when there are more than `MOST`."""
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        different = set(seen)
        if len(different) > MOST:
            return cls()
        for entity_type, name, kind in different:
            found[entity_type, name].add(kind)
        return cls({key: frozenset(kinds) for key, kinds in found.items()})

    @classmethod
    def from_json(cls, text: bytes) -> AttributeTypes:
        return cls.of(msgspec.json.decode(text, type=list[AttributeType]))

    def to_json(self) -> bytes:
        """Returns a JSON array of triples, sorted."""
        return msgspec.json.encode(sorted(self._all()))

    def new_in(self, seen: AttributeTypes) -> list[AttributeType]:
        """Returns the types, sorted, that attributes known here have in `seen` and lack here."""
        return sorted(each for each in seen._all() if each.kind not in self.types.get(each[:2], {each.kind}))

    def after(self, seen: AttributeTypes, *, whole: bool) -> AttributeTypes:
        """Returns what is known after a run.

        Args:
            seen: the types of the run.
            whole: it read everything, so that earlier types of its attributes are dropped.
        """
        before: _Types = {} if whole else self.types
        now = {key: kinds | before.get(key, frozenset()) for key, kinds in seen.types.items()}
        return AttributeTypes.of(AttributeTypes({**self.types, **now})._all())

    def _all(self) -> Iterator[AttributeType]:
        return (AttributeType(*key, kind) for key, kinds in self.types.items() for kind in kinds)
