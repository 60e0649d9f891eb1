"""One notification as it arrived, and the bytes of a file that holds several of them.

    file     "CTXIN1" count(4 bytes) entry*
    entry    length(4 bytes) CRC-32(4 bytes) MessagePack of [received_at_us, sequence, headers, body]

Numbers are unsigned and big-endian. The count tells a file that ends too early from one that is whole.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from contexture.errors import ConfigurationError
from contexture.storage.document import check_format

FORMAT = 1
_KIND = b"CTXIN"
_MAGIC = _KIND + str(FORMAT).encode()
_COUNT = struct.Struct(">I")
_ENTRY = struct.Struct(">II")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class InboxEntry(msgspec.Struct, frozen=True, array_like=True):
    """A notification as it arrived.

    Attributes:
        received_at_us: microseconds since 1970, UTC; strictly rising in each writer, and later than what the inbox
            contained when the writer started.
        sequence: of the entry in its writer, from 0.
        headers: those that say something about the entities, names in lower case; no credentials.
        body: of the request, byte for byte.
    """

    received_at_us: int
    sequence: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def received_at(self) -> datetime:
        """When it arrived, UTC."""
        return _EPOCH + timedelta(microseconds=self.received_at_us)


_DECODER = msgspec.msgpack.Decoder(InboxEntry)


def encode_entry(entry: InboxEntry) -> bytes:
    """The entry with its length and checksum."""
    payload = msgspec.msgpack.encode(entry)
    return _ENTRY.pack(len(payload), zlib.crc32(payload)) + payload


def encode_file(entries: Sequence[bytes]) -> bytes:
    """A file of entries that `encode_entry` made."""
    return b"".join((_MAGIC, _COUNT.pack(len(entries)), *entries))


def decode_file(content: bytes, name: str) -> Iterator[InboxEntry]:
    """The entries of a file, in order; `name` is for the error.

    Raises:
        ConfigurationError: the file is not what was written; the entries before the damage were given.
        UnknownFormatError: another version of Contexture wrote it.
    """
    check_format(f"the inbox's file {name}", format_of(content[: len(_MAGIC)]), FORMAT)
    if content[: len(_MAGIC)] != _MAGIC:
        raise _damaged(name, "it doesn't begin like one")
    try:
        (count,) = _COUNT.unpack_from(content, len(_MAGIC))
        offset = len(_MAGIC) + _COUNT.size
        for _ in range(count):
            length, checksum = _ENTRY.unpack_from(content, offset)
            offset += _ENTRY.size
            yield _checked(content[offset : offset + length], length, checksum, name)
            offset += length
    except struct.error:
        raise _damaged(name, "it ends too early") from None
    if offset != len(content):
        raise _damaged(name, "it goes on behind its end")


def format_of(beginning: bytes) -> int | None:
    """The format of a file of an inbox, by its first bytes; None where it is none."""
    digit = beginning[len(_KIND) : len(_KIND) + 1]
    return int(digit) if beginning.startswith(_KIND) and digit.isdigit() else None


def _checked(payload: bytes, length: int, checksum: int, name: str) -> InboxEntry:
    if len(payload) != length:
        raise _damaged(name, "it ends too early")
    if zlib.crc32(payload) != checksum:
        raise _damaged(name, "a checksum is wrong")
    try:
        return _DECODER.decode(payload)
    except msgspec.MsgspecError:
        raise _damaged(name, "an entry can't be read") from None


def _damaged(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the file {name!r} of the inbox is damaged: {why}",
        next_step="check the disk, restore the file or move it out of the inbox, then run a full resync",
        file=name,
    )
