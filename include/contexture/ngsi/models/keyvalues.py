"""From the normalized form to keyValues, the form that Smart Data Models' schemas describe."""

from __future__ import annotations

from collections.abc import Mapping

import orjson


def key_values(entity: Mapping[str, object]) -> dict[str, object]:
    """The entity with plain values: id and type as they are, of each attribute its value without type and metadata.

    Number literals that Python would rewrite become Python's numbers: a schema asks for their size, not their digits.
    """
    return {name: _plain(_value(name, member)) for name, member in entity.items()}


def _value(name: str, member: object) -> object:
    if name in {"id", "type"} or not isinstance(member, dict):
        return member
    return member.get("value")


def _plain(value: object) -> object:
    if isinstance(value, orjson.Fragment):
        literal = orjson.dumps(value).decode()
        return int(literal) if literal.lstrip("-").isdecimal() else float(literal)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
