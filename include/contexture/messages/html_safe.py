"""JSON as Cygnus writes it: no null members, and strings that are safe inside HTML."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

# None of these characters stands in JSON outside a string (numbers, literals and punctuation have none of them), and
# no UTF-8 sequence contains another, so replacing them in the finished text changes strings only.
_ESCAPES = tuple(
    (character.encode(), f"\\u{ord(character):04x}".encode())
    for character in ("<", ">", "&", "=", "'", "\u2028", "\u2029")
)

# What the special characters begin with: deleting these bytes tells in one step that a text has none of them.
_FIRST_BYTES = b"<>&='\xe2"


def dumps(value: object) -> bytes:
    """Compact JSON with members that are null left out and `< > & = '`, U+2028 and U+2029 escaped in every string.

    Nulls inside arrays stay. Number literals that stand as `orjson.Fragment` stay as they are.

    Raises:
        TypeError: the value can't be written as UTF-8 JSON.
    """
    text = orjson.dumps(value)
    if b"null" in text:
        text = orjson.dumps(without_null_members(value))
    return text if len(text.translate(None, _FIRST_BYTES)) == len(text) else _escaped(text)


def _escaped(text: bytes) -> bytes:
    for special, escape in _ESCAPES:
        text = text.replace(special, escape)
    return text


def without_null_members(value: object) -> object:
    """The value without the object members that are null, at any depth; nulls inside arrays stay."""
    if isinstance(value, Mapping):
        return {name: without_null_members(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_null_members(item) for item in value]
    return value
