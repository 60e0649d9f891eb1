"""Numbers as they come out of `parse_json`: Python's own, or literals that Python would rewrite."""

from __future__ import annotations

import orjson


def number(value: object) -> float | None:
    """The magnitude of a JSON number, or None when the value is none; infinite where a double can't hold it."""
    kind = type(value)
    if kind is int or kind is float:
        return value  # type: ignore[return-value]  # narrowed by its exact type, which leaves booleans out
    if kind is orjson.Fragment:
        return float(orjson.dumps(value))
    return None
