"""The encoding Cygnus gives the parts of a topic name (its releases 1.5.0 to 3.18).

It works on UTF-16 code units: `A-Z a-z 0-9 _ - .` stand for themselves, `=` becomes `xffff`, every other unit `x` and
its four lower-case hexadecimal digits. An `x` that four hexadecimal digits follow is doubled. The encoding isn't
reversible: `x/` and `x002f` have the same name, as upstream has it.
"""

from __future__ import annotations

import re

CONCATENATOR = "xffff"
"""What stands between the encoded parts of a name; inserted as it is, never encoded."""

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789_-."
_AMBIGUOUS_X = re.compile("x(?=[0-9A-Fa-f]{4})")
_SPECIAL = re.compile("[^A-Za-z0-9_.-]|x(?=[0-9A-Fa-f]{4})")
_ASCII_ESCAPES = {chr(unit): CONCATENATOR if chr(unit) == "=" else f"x{unit:04x}" for unit in range(128)} | {"x": "xx"}
_X = ord("x")


def encode(text: str) -> str:
    """The part of a topic name that stands for `text`; any string has one, also one with lone surrogates.

    >>> encode("/4wheels")
    'x002f4wheels'
    """
    if not text.isascii():
        return _SPECIAL.sub(_escape, text)
    # Most names need no or one kind of escape: deleting what is plain finds them faster than any expression.
    special = text.encode().translate(None, _PLAIN)
    if not special:
        return text
    kinds = set(special)
    if _X in kinds:
        kinds.discard(_X)
        # First, because the look-ahead reads the raw text. The escapes below add no character that is escaped.
        text = _AMBIGUOUS_X.sub("xx", text)
    for unit in kinds:
        character = chr(unit)
        text = text.replace(character, _ASCII_ESCAPES[character])
    return text


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character.isascii():
        return _ASCII_ESCAPES[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"x{units[start : start + 4]}" for start in range(0, len(units), 4))
