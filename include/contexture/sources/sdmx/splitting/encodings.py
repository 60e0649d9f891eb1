"""Messages in any encoding: read as UTF-8, and written in the encoding they came in."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Protocol

from contexture.sources.sdmx.errors import Limits, StructureMessageError

HEAD_BYTES = 4096
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where the zero bytes of the first two characters are (RFC 4627, 3; XML 1.0, appendix F).
_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
}
_EBCDIC = b"\x4c\x6f\xa7\x94"
_DECLARED = re.compile(rb"^\s*<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._:-]+)[\"']")


class ByteStream(Protocol):
    """What bytes are read from: a file, an answer, `io.BytesIO`."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a message is written.

    Attributes:
        codec: Python's name of it.
        bom: the byte order mark in front, or nothing.
    """

    codec: str
    bom: bytes = b""

    @property
    def is_utf8(self) -> bool:
        """Whether its bytes are UTF-8 as they are."""
        return self.codec in {"utf-8", "ascii"}

    def encoded(self, text: bytes) -> bytes:
        """Returns a piece of UTF-8 as the message has it."""
        return text if self.is_utf8 else text.decode().encode(self.codec)


def detect(head: bytes) -> Encoding:
    """The encoding by byte order mark, by zero bytes, or by the XML declaration; UTF-8 where none says otherwise.

    Raises:
        StructureMessageError: an encoding that no one knows is declared.
    """
    for bom, codec in _BOMS:
        if head.startswith(bom):
            return Encoding(codec, bom)
    codec = _ZEROS.get(tuple(byte == 0 for byte in head[:4]), "")
    if codec:
        return Encoding(codec)
    declared = _DECLARED.match(_readable(head))
    return Encoding(_codec(declared[1].decode()) if declared else "utf-8")


def utf8(piece: bytes, head: bytes) -> bytes:
    """Returns a piece of a message in UTF-8; the first bytes of the message show its encoding."""
    encoding = detect(head[:HEAD_BYTES])
    return piece if encoding.is_utf8 else piece.decode(encoding.codec).encode()


def _readable(head: bytes) -> bytes:
    # An EBCDIC declaration is in the letters that all its code pages share.
    return head.decode("cp037", "replace").encode() if head.startswith(_EBCDIC) else head


def _codec(declared: str) -> str:
    try:
        codec = codecs.lookup(declared)
        b"".decode(codec.name)
    except (LookupError, ValueError):
        raise StructureMessageError(
            f"the encoding {declared[:40]} is unknown", next_step="request UTF-8 from the registry"
        ) from None
    # A declaration that was readable as bytes is not in UTF-16, whatever it declares.
    return "utf-8" if codec.name.startswith(("utf-16", "utf-32", "utf-8")) else codec.name


class Utf8Source:
    """A message as UTF-8, piece by piece, without its byte order mark."""

    def __init__(self, stream: ByteStream, limits: Limits) -> None:
        self._stream = stream
        self._limits = limits
        self._read = 0
        head = _first(stream)
        self.encoding = detect(head)
        self._decoder = None if self.encoding.is_utf8 else codecs.getincrementaldecoder(self.encoding.codec)()
        self._head = self._utf8(head[len(self.encoding.bom) :], final=len(head) < HEAD_BYTES)

    @property
    def head(self) -> bytes:
        """The first bytes, some 4,000 where there are so many; they are still to be read."""
        return self._head

    def read(self, size: int) -> bytes:
        """Returns some UTF-8, about `size` bytes; none at the end.

        Raises:
            StructureMessageError: these are no bytes of the encoding.
            LimitExceededError: the message is longer than it may be.
        """
        if self._head:
            piece, self._head = self._head, b""
            return piece
        while raw := self._stream.read(size):
            if piece := self._utf8(raw):
                return piece
        return self._utf8(b"", final=True)

    def _utf8(self, raw: bytes, *, final: bool = False) -> bytes:
        try:
            piece = raw if self._decoder is None else self._decoder.decode(raw, final).encode()
        except UnicodeError:
            raise StructureMessageError(
                f"the message is not written in {self.encoding.codec}, the encoding that it declares",
                next_step="request UTF-8 from the registry, or correct the declared encoding",
            ) from None
        self._read += len(piece)
        self._limits.check_message(self._read)
        return piece


def _first(stream: ByteStream) -> bytes:
    pieces = bytearray()
    while len(pieces) < HEAD_BYTES and (piece := stream.read(HEAD_BYTES - len(pieces))):
        pieces += piece
    return bytes(pieces)
