"""The bytes of a message that are still needed, by their positions in the message."""

from __future__ import annotations

from contexture.sdmx.limits import Limits
from contexture.sdmx.xml_envelope import START_TAG


class Window:
    """A piece of the message that moves on with the parser, and keeps what it was told to keep."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._bytes = bytearray()
        self._base = 0
        self._kept_from: int | None = 0
        self._in_artefact = False

    def add(self, chunk: bytes) -> None:
        """The next bytes of the message."""
        self._bytes += chunk

    def keep(self, position: int, *, artefact: bool) -> None:
        """Keeps all from this position on, until it is released."""
        self._kept_from, self._in_artefact = position, artefact

    def release(self) -> None:
        """Nothing of what went by is needed any more."""
        self._kept_from, self._in_artefact = None, False

    def move(self, position: int) -> None:
        """The parser got so far; lets go what nobody needs.

        Raises:
            LimitExceededError: more is needed than may be.
        """
        start = max(position if self._kept_from is None else self._kept_from, self._base)
        del self._bytes[: start - self._base]
        self._base = start
        if self._in_artefact:
            self._limits.check_artefact(len(self._bytes))
        else:
            self._limits.check_envelope(len(self._bytes))

    def before(self, position: int) -> bytes:
        """All that is at hand up to a position."""
        return bytes(self._bytes[: position - self._base])

    def start_tag(self, position: int) -> bytes:
        """The start tag that begins there."""
        found = START_TAG.match(self._bytes, position - self._base)
        return found[0] if found else b""

    def comment(self, position: int) -> bytes:
        """The comment that begins there."""
        start = position - self._base
        return bytes(self._bytes[start : self._bytes.index(b"-->", start) + 3])

    def element(self, end: int, *, empty: bool) -> bytes:
        """The element from where bytes are kept, at its end.

        Args:
            end: where the parser is: before `</a>`, but behind `<a/>`.
            empty: whether nothing is in it; it may be of either form then.
        """
        start, at = (self._kept_from or 0) - self._base, end - self._base
        if not (empty and self._bytes[at - 2 : at] == b"/>"):
            at = self._bytes.index(b">", at) + 1
        return bytes(self._bytes[start:at])
