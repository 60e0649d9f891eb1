"""Values as the broker's database compares them: only with values of their own kind."""

from __future__ import annotations

import re

import orjson

from contexture_sandbox.context_broker.times import parse_time

Comparable = tuple[int, object]
"""The rank of a kind, and a value of it."""
ORDERED_RANKS = frozenset({1, 2, 4})
"""Numbers, texts and times: what can be greater or less."""
MISSING = object()
"""In place of a value that is not there."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Instant(str):
    """A text that is a time."""

    __slots__ = ()


def operand(text: str) -> object:
    """Returns the value of an operand in an expression: a quoted text, a literal, a number, a time, or a text."""
    if len(text) > 1 and text.startswith("'") and text.endswith("'"):
        return text[1:-1]
    if text in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[text]
    if _NUMBER.fullmatch(text):
        return float(text)
    return text if parse_time(text) is None else Instant(text)


def comparable(value: object) -> Comparable:
    """A value with the rank of its kind: only values of one kind compare, as in the broker's database."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (3, value)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, Instant):
        moment = parse_time(value)
        return (2, str(value)) if moment is None else (4, moment)
    return (2, value) if isinstance(value, str) else (5, orjson.dumps(value) if value is not MISSING else b"")
