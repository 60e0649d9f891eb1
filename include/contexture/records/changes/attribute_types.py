"""The NGSI types that attributes had: what earlier runs saw, against what one run sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

MOST = 50_000
"""More combinations are no model: attributes are named after data then, and the table would grow with that."""

Seen = tuple[str, str, str]
"""An entity type, an attribute's name, and the attribute's NGSI type."""


@dataclass(frozen=True, slots=True)
class AttributeTypes:
    """Types by entity type and attribute."""

    types: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Iterable[Seen]) -> AttributeTypes:
        """What was seen; nothing when that is more than a model has."""
        found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        different = set(seen)
        if len(different) > MOST:
            return cls()
        for entity_type, name, kind in different:
            found[entity_type, name].add(kind)
        return cls({key: frozenset(kinds) for key, kinds in found.items()})

    @classmethod
    def from_json(cls, text: bytes) -> AttributeTypes:
        """From what `to_json` gave."""
        return cls.of(msgspec.json.decode(text, type=list[Seen]))

    def to_json(self) -> bytes:
        """As a JSON array of triples, sorted."""
        return msgspec.json.encode(sorted((*key, kind) for key, kinds in self.types.items() for kind in kinds))

    def new_in(self, seen: AttributeTypes) -> list[Seen]:
        """The types that attributes known here have now and did not have, sorted."""
        found = ((key, kind) for key, kinds in seen.types.items() if key in self.types for kind in kinds)
        return sorted((*key, kind) for key, kind in found if kind not in self.types[key])

    def after(self, seen: AttributeTypes, *, whole: bool) -> AttributeTypes:
        """What is known after a run.

        Args:
            seen: what it saw.
            whole: it read everything, so that what an attribute was before counts no more.
        """
        before: Mapping[tuple[str, str], frozenset[str]] = {} if whole else self.types
        now = {key: kinds | before.get(key, frozenset()) for key, kinds in seen.types.items()}
        return AttributeTypes.of((*key, kind) for key, kinds in {**self.types, **now}.items() for kind in kinds)
