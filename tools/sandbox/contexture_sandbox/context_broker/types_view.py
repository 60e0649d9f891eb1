"""`GET /v2/types`: what kinds of entities there are, with which attributes."""

from __future__ import annotations

from collections.abc import Iterable

from contexture_sandbox.context_broker.model import StoredEntity


def describe_types(entities: Iterable[StoredEntity], *, attribute_detail: bool = True) -> list[dict[str, object]]:
    """Types in byte order, each with its attributes, their types, and the number of entities."""
    counts: dict[str, int] = {}
    found: dict[str, dict[str, set[str]]] = {}
    for entity in entities:
        counts[entity.type] = counts.get(entity.type, 0) + 1
        attributes = found.setdefault(entity.type, {})
        for name, attribute in entity.attributes.items():
            attributes.setdefault(name, set()).add(attribute.type)
    return [
        {
            "type": name,
            "attrs": {
                attribute: {"types": sorted(found[name][attribute]) if attribute_detail else []}
                for attribute in sorted(found[name])
            },
            "count": counts[name],
        }
        for name in sorted(counts)
    ]
