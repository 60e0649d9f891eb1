"""Walking through a JSON text piece by piece, by byte positions: members and elements are found, values stay bytes.

Only what is around artefacts is read here, and where each artefact ends; whether an artefact is valid JSON inside
shows when it is examined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from contexture.sources.sdmx.errors import Limits, StructureMessageError
from contexture.sources.sdmx.splitting.encodings import Utf8Source

_FIRST_CHUNK = 1 << 18
_LARGEST_CHUNK = 1 << 24
_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]+")
_STRING_PATTERN = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(_STRING_PATTERN, re.DOTALL)
_PLAIN = rb'[^"{}\[\]]*+'


def _with(containers: bytes) -> bytes:
    return _PLAIN + rb"(?:(?:" + _STRING_PATTERN + containers + rb")" + _PLAIN + rb")*+"


_FLAT = rb"|[{\[]" + _with(b"") + rb"[}\]]"
_SHALLOW = rb"|[{\[]" + _with(_FLAT) + rb"[}\]]"
# Up to and with the next bracket that is in no string, and begins nothing that is whole and shallow: of a code list,
# the codes are passed without a step in Python. With no group, it is the rest, which has no such bracket.
_TO_BRACKET = re.compile(_with(rb"|[{\[]" + _with(_SHALLOW) + rb"[}\]]") + rb"(?:([{}\[\]])|.*)", re.DOTALL)
_OPENING = b"{["


class JsonText:
    """A JSON text that is read from its beginning to its end, once.

    Attributes:
        offset: of the next byte, from the beginning.
    """

    def __init__(self, source: Utf8Source, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._bytes = bytearray()
        self._at = 0
        self._base = 0
        self._chunk = _FIRST_CHUNK

    @property
    def offset(self) -> int:
        """Where the next value begins, in bytes of UTF-8."""
        self._peek()
        return self._base + self._at

    def members(self) -> Iterator[str]:
        """Yields the keys of the object that begins here; the value of each must be taken before the next key.

        Raises:
            StructureMessageError: it is no JSON object.
        """
        self._take(b"{")
        if self._peek() == b"}":
            self._take(b"}")
            return
        while True:
            key = self._key()
            self._take(b":")
            yield key
            if self._ended(b"}"):
                return

    def elements(self) -> Iterator[None]:
        """Stops before each element of the array that begins here; each must be taken before the next."""
        self._take(b"[")
        if self._peek() == b"]":
            self._take(b"]")
            return
        while True:
            yield None
            if self._ended(b"]"):
                return

    def begins(self, opening: bytes) -> bool:
        """Whether the next value begins with this byte."""
        return self._peek() == opening

    def value(self) -> bytes:
        """Returns the bytes of the next value.

        Raises:
            LimitExceededError: it is larger or deeper than an artefact may be.
        """
        self._let_go()
        end = self._end_of_value(keep=True)
        taken = bytes(self._bytes[self._at : end])
        self._at = end
        return taken

    def skip(self) -> None:
        """Goes behind the next value without keeping it."""
        self._at = self._end_of_value(keep=False)

    def finish(self) -> None:
        """Refuses anything but white space behind the last value."""
        while True:
            self._at = _end(_SPACE, self._bytes, self._at)
            if self._at < len(self._bytes):
                raise self._broken("something follows it")
            if not self._more():
                return

    def _ended(self, closing: bytes) -> bool:
        if self._peek() == b",":
            self._at += 1
            return False
        self._take(closing)
        return True

    def _key(self) -> str:
        if self._peek() != b'"':
            raise self._broken("a key is expected")
        while True:
            end = _end(_STRING, self._bytes, self._at)
            if end >= 0:
                break
            self._need_more()
            self._limits.check_envelope(len(self._bytes) - self._at)
        raw = bytes(self._bytes[self._at : end])
        self._at = end
        try:
            return str(orjson.loads(raw))
        except orjson.JSONDecodeError:
            raise self._broken("a key is not a JSON string") from None

    def _end_of_value(self, *, keep: bool) -> int:
        first = self._peek()
        if first and first in _OPENING:
            return self._end_of_container(keep=keep)
        pattern = _STRING if first == b'"' else _SCALAR
        while True:
            end = _end(pattern, self._bytes, self._at)
            if end >= 0 and (first == b'"' or end < len(self._bytes)):
                return end
            if end < 0 and first != b'"':
                raise self._broken("a value is expected")
            self._need_more()
            self._limits.check_artefact(len(self._bytes) - self._at)

    def _end_of_container(self, *, keep: bool) -> int:
        # The first bracket is taken here: the pattern would pass a whole container.
        depth, position = 1, self._at + 1
        while True:
            depth, position, ended = self._brackets(depth, position)
            if ended:
                return position
            if keep:
                self._limits.check_artefact(len(self._bytes) - self._at)
            else:
                del self._bytes[:position]
                self._base += position
                self._at = position = 0
            self._need_more()

    def _brackets(self, depth: int, position: int) -> tuple[int, int, bool]:
        """Goes on in the bytes at hand: the depth, where to go on from, and whether the container ended there."""
        text, deepest = self._bytes, self._limits.depth
        for match in _TO_BRACKET.finditer(text, position):
            if match.lastindex is None:
                return depth, match.start(), False
            position = match.end()
            if text[position - 1] in _OPENING:
                depth += 1
                if depth > deepest:
                    raise self._limits.too_deep()
            else:
                depth -= 1
                if not depth:
                    return depth, position, True
        return depth, position, False

    def _peek(self) -> bytes:
        while True:
            self._at = _end(_SPACE, self._bytes, self._at)
            if self._at < len(self._bytes):
                return bytes(self._bytes[self._at : self._at + 1])
            self._let_go()
            self._need_more()

    def _take(self, expected: bytes) -> None:
        if self._peek() != expected:
            raise self._broken(f"'{expected.decode()}' is expected")
        self._at += 1
        self._chunk = _FIRST_CHUNK

    def _let_go(self) -> None:
        del self._bytes[: self._at]
        self._base += self._at
        self._at = 0

    def _need_more(self) -> None:
        if not self._more():
            raise self._broken("it ends in the middle")

    def _more(self) -> bool:
        piece = self._source.read(self._chunk)
        # A long string is looked through again from its beginning each time: twice as much keeps that linear.
        self._chunk = min(self._chunk * 2, _LARGEST_CHUNK)
        self._bytes += piece
        return bool(piece)

    def _broken(self, what: str) -> StructureMessageError:
        return StructureMessageError(
            f"the JSON is broken at byte {self._base + self._at}: {what}",
            next_step="read it again; what a broken message lacks is not deleted",
        )


def _end(pattern: re.Pattern[bytes], text: bytearray, position: int) -> int:
    # No match object may live on: a bytearray can't grow while one looks at it.
    match = pattern.match(text, position)
    return match.end() if match else -1
