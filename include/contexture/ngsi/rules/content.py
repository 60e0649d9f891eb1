"""What the whole body shows: forbidden characters in texts, nesting, size."""

from __future__ import annotations

import re

from contexture.events.rules import Findings, named
from contexture.ngsi.entity import ParsedEntity

DEEPEST_NESTING = 50

_FORBIDDEN = re.compile("[<>\"'=;()]")
_UNRESTRICTED = "TextUnrestricted"

# The forbidden characters but the quote, which in a text stands behind a backslash, as every escape does.
_SUSPICIOUS = b"<>'=;()\\"


def check_content(parsed: ParsedEntity, maximum_bytes: int, found: Findings, *, linked_data: bool = False) -> None:
    """Finds what breaks `size`, `nesting` and `forbidden-char`; a look at the bytes suffices for most entities.

    NGSI-LD forbids no character in a value.
    """
    body = parsed.body
    size = len(body)
    if size > maximum_bytes:
        found.add("size", f"the body has {size} bytes; a record takes {maximum_bytes}")
    # Each level opens a bracket, so as many levels need as many brackets.
    if body.count(b"{") + body.count(b"[") > DEEPEST_NESTING:
        _check_nesting(parsed, found)
    if not linked_data and len(body.translate(None, _SUSPICIOUS)) < size:
        _check_texts(parsed, found)


def _check_nesting(parsed: ParsedEntity, found: Findings) -> None:
    depth = _depth(parsed.entity)
    if depth > DEEPEST_NESTING:
        found.add("nesting", f"the body is nested {depth} levels deep; NGSIv2 accepts {DEEPEST_NESTING}")


def _depth(value: object) -> int:
    """Level by level, for bodies may be nested deeper than Python's own stack should go."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _check_texts(parsed: ParsedEntity, found: Findings) -> None:
    for name, attribute in parsed.attributes.items():
        if isinstance(attribute, dict) and attribute.get("type") != _UNRESTRICTED:
            character = _first_forbidden(attribute.get("value"))
            if character is not None:
                found.add("forbidden-char", f"{named(name)} holds {character!a}, which NGSIv2 forbids in values")


def _first_forbidden(value: object) -> str | None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            match = _FORBIDDEN.search(item)
            if match:
                return match[0]
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return None
