"""Reading JSON without changing its numbers, and the canonical form that shows equal content.

A float round trip rewrites `1.0E5` and rounds 23-digit numbers, so a body that went through one is no longer what the
source said. Bodies whose literals survive orjson take the fast road; the others carry their literals as fragments.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256

import msgspec
import orjson

_INTEGER_TO_KEEP = re.compile(rb"-0(?![.eE\d])|\d{19}")
"""What may be an integer that a Python number changes: minus zero, or more digits than 64 bits are sure to hold."""

_SORTED = orjson.OPT_SORT_KEYS


def parse_json(raw: bytes) -> object:
    """Returns the value of a JSON text, such that `orjson.dumps` writes every number as it was written in `raw`.

    Numbers that orjson would rewrite are `orjson.Fragment`s in the tree, all others as Python numbers.

    Raises:
        ValueError: `raw` is not JSON.
    """
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # JSON knows no largest number, and a double does: `1E400` is legal.
        if "infinity" not in str(error):
            raise
        return _in_unicode(_parse_with_literals(raw))
    if orjson.dumps(value) == raw:
        return value
    if _INTEGER_TO_KEEP.search(raw):
        return _parse_with_literals(raw)
    return _parse_with_float_literals(raw)


def canonical_json(value: object) -> bytes:
    """Returns the one form of all equal contents: keys sorted, no white space, number literals as written."""
    return orjson.dumps(value, option=_SORTED)


def content_hash(value: object) -> bytes:
    """SHA-256 (32 bytes) of the canonical form."""
    return sha256(canonical_json(value)).digest()


def _parse_with_float_literals(raw: bytes) -> object:
    try:
        return _FLOAT_LITERALS.decode(raw)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _parse_with_literals(raw: bytes) -> object:
    try:
        return json.loads(raw, parse_int=_integer, parse_float=_float, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _in_unicode(value: object) -> object:
    """Returns the value, unless a text of it contains half a character; elsewhere orjson has checked that already."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        if "surrogates" in str(error):
            raise ValueError("a text holds an incomplete character") from None
        raise
    return value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _integer(literal: str) -> object:
    number = int(literal) if len(literal) < 19 else None
    return number if number is not None and literal != "-0" else orjson.Fragment(literal)


def _float(literal: str) -> object:
    number = float(literal)
    return number if orjson.dumps(number) == literal.encode() else orjson.Fragment(literal)


_FLOAT_LITERALS = msgspec.json.Decoder(float_hook=_float)
"""Ten times as fast as the standard library's parser, which alone shows the literals of integers too."""
