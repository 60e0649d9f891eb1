"""What a backslash begins in Java's regular expressions, outside and inside of classes."""

from __future__ import annotations

import re
from typing import NamedTuple

REFERENCE = re.compile(r"\\(?:k<([A-Za-z][A-Za-z0-9]*)>|([1-9][0-9]*))")

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": r"!-/:-@\[-`{-\~",
    "Graph": r"!-\~",
    "Print": r" -\~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9A-Fa-f",
    "Space": r"\t-\r ",
}
_SETS = {
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n-\r\x85\u2028\u2029",
}
_SAME = frozenset("dDwWsS")
_ANCHORS = {
    # Up to Java 18, under which Cygnus runs, boundaries know the letters of all languages, as \w does not.
    "b": r"(?u:\b)",
    "B": r"(?!(?u:\b))",
    "A": r"\A",
    "z": r"\Z",
    "Z": r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)",
    "R": r"(?:\r\n|[\n-\r\x85\u2028\u2029])",
}
_CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7, "e": 27}
_PROPERTY = re.compile(r"\\([pP])\{(\w+)\}")
_NUMBER = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|0([0-3][0-7]{2}|[0-7]{1,2}))")
_LARGEST = 0x10FFFF


class Escape(NamedTuple):
    """An escape in Python's words: outside of a class, in one (None: not possible there), and where it ends."""

    outside: str
    inside: str | None
    end: int


def read(pattern: str, at: int) -> Escape | None:
    """The escape at a backslash; None when there is none that can be translated."""
    letter = pattern[at + 1 : at + 2]
    if not letter:
        return None
    if letter in _SAME:
        return Escape(f"\\{letter}", f"\\{letter}", at + 2)
    if letter in _ANCHORS:
        is_boundary_of_clusters = letter == "b" and pattern.startswith("{", at + 2)
        return None if is_boundary_of_clusters else Escape(_ANCHORS[letter], None, at + 2)
    if letter.lower() in _SETS:
        return _set(_SETS[letter.lower()], letter.isupper(), at + 2)
    return _property(pattern, at) if letter in "pP" else _literal(pattern, at, letter)


def _set(members: str, negated: bool, end: int) -> Escape:
    return Escape(f"[^{members}]", None, end) if negated else Escape(f"[{members}]", members, end)


def _property(pattern: str, at: int) -> Escape | None:
    found = _PROPERTY.match(pattern, at)
    if found is None or found[2] not in _POSIX:
        return None
    return _set(_POSIX[found[2]], found[1] == "P", found.end())


def _literal(pattern: str, at: int, letter: str) -> Escape | None:
    if number := _NUMBER.match(pattern, at):
        octal = number[4]
        point = int(octal, 8) if octal else int(number[1] or number[2] or number[3], 16)
        return _character(point, number.end()) if point <= _LARGEST else None
    if letter in _CONTROLS:
        return _character(_CONTROLS[letter], at + 2)
    if letter == "c" and at + 2 < len(pattern):
        return _character(ord(pattern[at + 2]) ^ 64, at + 3)
    return None if letter.isascii() and letter.isalnum() else _character(ord(letter), at + 2)


def _character(point: int, end: int) -> Escape:
    text = f"\\U{point:08x}"
    return Escape(text, text, end)
