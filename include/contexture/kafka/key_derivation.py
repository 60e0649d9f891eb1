"""How much work a PKCS#12 file asks for before it opens: numbers in it say how often its password is hashed.

Whoever opens it does what they say, for hours if need be, and nothing ends that from within the process. They stand
where they can be read without the password: behind a salt, as PKCS#12 (RFC 7292), PBES1 and PBKDF2 (RFC 8018) have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

MOST_ROUNDS: Final = 1_000_000
"""Opened within the process: a second or two. OpenSSL writes 2,048 rounds, Java 10,000."""
_INTEGER, _OCTETS, _CONSTRUCTED = 0x02, 0x04, 0x20
_INDEFINITE, _LONG = 0x80, 0x7F
_WIDEST_BYTES: Final = 8


class _Element(NamedTuple):
    tag: int
    start: int
    end: int


def rounds_in(content: bytes) -> int:
    """The most rounds that any readable part of a file in DER or BER asks for; 0 where none says."""
    # No byte is in the heads of two elements, so this takes as long as the file is large, however deep it is.
    most, waiting = 0, [(0, len(content))]
    while waiting:
        before = 0
        for element in _elements(content, *waiting.pop()):
            if element.tag == _INTEGER and before == _OCTETS:
                most = max(most, int.from_bytes(content[element.start : element.end]))
            if element.tag & _CONSTRUCTED or element.tag == _OCTETS:
                waiting.append((element.start, element.end))
            before = element.tag
    return most


def _elements(content: bytes, start: int, end: int) -> Iterator[_Element]:
    """The elements of a stretch, up to the first that is none: octets may be anything."""
    while start + 2 <= end:
        tag, length = content[start], content[start + 1]
        at = start + 2
        if length == _INDEFINITE:
            stop = end
        elif length > _INDEFINITE:
            width = length & _LONG
            if width > _WIDEST_BYTES or at + width > end:
                return
            length, at = int.from_bytes(content[at : at + width]), at + width
            stop = at + length
        else:
            stop = at + length
        if stop > end:
            return
        yield _Element(tag, at, stop)
        start = stop
