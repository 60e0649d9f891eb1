"""Numbers that came as texts, read as numbers where a publication says so."""

from __future__ import annotations

import re

import msgspec

from contexture.events import parse_json
from contexture.ngsi.entity import ParsedEntity

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TYPES = ("Number", "Integer", "Float")


def with_numbers(parsed: ParsedEntity) -> ParsedEntity:
    """The entity with every text that is a JSON number, in an attribute whose type is a number's, as that number.

    Digits stay as they were written. What is no number as JSON writes it (`1,5`, `012`, `12 km`) stays a text. Where
    nothing changes, the entity is given back as it is.
    """
    read = {name: {**attribute, "value": value} for name, attribute, value in _texts(parsed)}
    if not read:
        return parsed
    return msgspec.structs.replace(parsed, entity=parsed.entity | read, attributes=parsed.attributes | read)


def _texts(parsed: ParsedEntity) -> list[tuple[str, dict[str, object], object]]:
    return [
        (name, attribute, parse_json(value.encode()))
        for name, attribute in parsed.attributes.items()
        if isinstance(attribute, dict)
        and attribute.get("type") in _TYPES
        and isinstance(value := attribute.get("value"), str)
        and _NUMBER.fullmatch(value)
    ]
