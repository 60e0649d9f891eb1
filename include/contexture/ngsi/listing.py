"""The entities of an answer: a JSON list cut into its items, each as the broker's own bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_BLANK = re.compile(r"[ \t\n\r]*")
# Only where items end is asked for: numbers of any length, and whatever stands in texts, are left to the rules.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


def listed(body: bytes) -> list[bytes]:
    """The items of a JSON list as they were written, also those that hold what JSON forbids (half of a character, NaN).

    An item like that is for the rules to refuse; the others of its page are as good as ever.

    Raises:
        ValueError: it is no JSON list.
        RecursionError: it is nested too deeply.
    """
    try:
        return [bytes(item) for item in _LIST.decode(body)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Byte by byte, so that what is no UTF-8 stays where it was.
        text = body.decode("utf-8", "surrogateescape")
        return [item.encode("utf-8", "surrogateescape") for item in _items(text)]


def _items(text: str) -> Iterator[str]:
    at = _after(text, _next(text, 0), "[")
    if text[at : at + 1] != "]":
        while True:
            _, end = _SCANNER.raw_decode(text, at)
            yield text[at:end]
            at = _next(text, end)
            if text[at : at + 1] == "]":
                break
            at = _after(text, at, ",")
    if _next(text, at + 1) != len(text):
        raise ValueError("something follows the list")


def _after(text: str, at: int, expected: str) -> int:
    if text[at : at + 1] != expected:
        raise ValueError(f"no {expected} at character {at}")
    return _next(text, at + 1)


def _next(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
