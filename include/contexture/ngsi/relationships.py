"""What entities refer to: attributes of type Relationship, and those called `refX` that hold texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set

from contexture.ngsi.entity import ParsedEntity

_REFERENCE = re.compile(r"ref[A-Z]")
_URN = re.compile(r"urn:ngsi-ld:([^:]+):")


def targets(parsed: ParsedEntity, types: Set[str] = frozenset()) -> list[str]:
    """The ids that an entity refers to, in order.

    Args:
        parsed: the entity.
        types: the only types there are, where that is known: a URN that names another one is left out.
    """
    found = (
        target
        for name, attribute in parsed.attributes.items()
        if isinstance(attribute, Mapping) and (attribute.get("type") == "Relationship" or _REFERENCE.match(name))
        for target in _texts(attribute.get("value"))
    )
    return list(_of_types(found, types) if types else found)


def _texts(value: object) -> Iterator[str]:
    values = value if isinstance(value, list) else (value,)
    return (each for each in values if isinstance(each, str) and each)


def _of_types(found: Iterable[str], types: Set[str]) -> Iterator[str]:
    return (target for target in found if (urn := _URN.match(target)) is None or urn[1] in types)
