"""Reading a request's body as JSON that means one thing only, with its number literals."""

from __future__ import annotations

import json
from collections.abc import Iterable

import orjson

from contexture.errors import RejectedError
from contexture.events import parse_json
from contexture.ngsi.notifications.errors import TOO_LARGE, refused

MAXIMUM_NESTING = 100
"""Deeper than any rule lets an entity be, and shallower than what the JSON writers take."""


class _DuplicateMemberError(ValueError):
    """An object names a member twice, and readers differ on which one holds."""


def read_json(body: bytes, maximum_bytes: int) -> dict[str, object]:
    """The JSON object of a body; numbers that a float would change stand as `orjson.Fragment`s.

    Raises:
        NotificationError: too large, not UTF-8, no JSON object, nested too deep, or a member stands twice.
    """
    if len(body) > maximum_bytes:
        raise refused(
            f"the body has {len(body)} bytes, more than {maximum_bytes}", "notify fewer entities at once", TOO_LARGE
        )
    if not body.strip():
        raise refused("the body is empty", "send the notification as JSON")
    value = _parsed(body)
    if not isinstance(value, dict):
        raise refused(f"the body is a JSON {type(value).__name__}, not an object", "send a notification")
    # Each level opens a bracket, so as many levels need as many brackets.
    if body.count(b"{") + body.count(b"[") > MAXIMUM_NESTING and _is_deeper(value, MAXIMUM_NESTING):
        raise _too_deep()
    return value


def _parsed(body: bytes) -> object:
    try:
        value = parse_json(body)
        # What is written again byte for byte has lost no member.
        if orjson.dumps(value) != body:
            json.loads(body, object_pairs_hook=_check_unique)
    except UnicodeDecodeError:
        raise _not_utf_8() from None
    except _DuplicateMemberError as error:
        raise refused(f"the member {str(error)[:60]!r} stands twice in one object", "name each member once") from None
    except (TypeError, RecursionError):
        # orjson reads deeper than it writes, and says so by a TypeError.
        raise _too_deep() from None
    except ValueError as error:
        raise _unreadable(body, str(error)) from None
    return value


def _check_unique(members: list[tuple[str, object]]) -> None:
    names: set[str] = set()
    for name, _ in members:
        if name in names:
            raise _DuplicateMemberError(name)
        names.add(name)


def _unreadable(body: bytes, reason: str) -> RejectedError:
    if "depth limit" in reason or "ecursion" in reason:
        return _too_deep()
    try:
        body.decode()
    except UnicodeDecodeError:
        return _not_utf_8()
    return refused(f"the body isn't JSON ({reason[:120]})", "send the notification as JSON")


def _not_utf_8() -> RejectedError:
    return refused("the body isn't UTF-8", "send the notification in UTF-8")


def _too_deep() -> RejectedError:
    return refused(f"the body is nested more than {MAXIMUM_NESTING} levels deep", "flatten the attribute's value")


def _is_deeper(value: object, limit: int) -> bool:
    """Level by level, for a body may be nested deeper than Python's own stack should go."""
    level: list[object] = [value]
    for _ in range(limit + 1):
        level = [inner for item in level for inner in _inside(item) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inside(item: object) -> Iterable[object]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()
