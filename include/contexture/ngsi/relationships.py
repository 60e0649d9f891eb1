"""What entities refer to: attributes of type Relationship, and those called `refX` that hold texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from contexture.ngsi.entity import ParsedEntity

_REFERENCE = re.compile(r"ref[A-Z]")
_URN = re.compile(r"urn:ngsi-ld:([^:]+):")


def targets(parsed: ParsedEntity, types: Set[str] = frozenset()) -> list[str]:
    """The ids that an entity refers to, in order.

    Args:
        parsed: the entity.
        types: the only types there are, where that is known: a URN that names another one is left out.
    """
    found: list[str] = []
    for name, attribute in parsed.attributes.items():
        # Nearly no attribute gets further than this line.
        if isinstance(attribute, dict) and (attribute.get("type") == "Relationship" or name.startswith("ref")):
            found += _named_by(name, attribute)
    return [target for target in found if _may_be_of(types, target)] if types else found


def _named_by(name: str, attribute: Mapping[str, object]) -> Iterator[str]:
    is_reference = attribute.get("type") == "Relationship" or _REFERENCE.match(name)
    return _texts(attribute.get("value")) if is_reference else iter(())


def _may_be_of(types: Set[str], target: str) -> bool:
    urn = _URN.match(target)
    return urn is None or urn[1] in types


def _texts(value: object) -> Iterator[str]:
    values = value if isinstance(value, list) else (value,)
    return (each for each in values if isinstance(each, str) and each)
