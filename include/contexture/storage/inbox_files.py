"""The files of an inbox: their entries, their format, and how one is written whole or not at all.

On a local disk: a temporary name, fsync, rename, fsync of the folder. On an object store, which knows no fsync, the
whole-file write of `FileTree`.

file     "CTXIN1" count(4 bytes) entry*
    entry    length(4 bytes) CRC-32(4 bytes) MessagePack of [received_at_us, sequence, headers, body]

Numbers are unsigned and big-endian. The count distinguishes a file that ends too early from a complete one.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec
from pyarrow import fs

from contexture.errors import ConfigurationError, RetriableError
from contexture.storage.documents import check_format
from contexture.storage.file_tree import FileTree

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
    """Returns a file of entries that `encode_entry` made."""
    return b"".join((_MAGIC, _COUNT.pack(len(entries)), *entries))


def decode_file(content: bytes, name: str) -> Iterator[InboxEntry]:
    """The entries of a file, in order; `name` is for the error.

    Raises:
        ConfigurationError: the file is not what was written; the entries before the damage were given.
        UnknownFormatError: another version of Contexture wrote it.
    """
    check_format(f"the inbox's file {name}", format_of(content[: len(_MAGIC)]), FORMAT)
    if content[: len(_MAGIC)] != _MAGIC:
        raise _damaged(name, "it does not begin like one")
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
        raise _damaged(name, "it continues after its end")


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
        raise _damaged(name, "an entry cannot be read") from None


def _damaged(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the file {name!r} of the inbox is damaged: {why}",
        next_step="check the disk, restore the file or move it out of the inbox, then run a full resync",
        file=name,
    )


_NAME = re.compile(r"(\d{17})-([a-z0-9]+)-(\d{12})(?:-(\d{17}))?")


@dataclass(frozen=True, slots=True)
class InboxFile:
    """A file of an inbox.

    Attributes:
        time_us, sequence: of its first entry.
        writer: who wrote it.
        last_us: the time of its last entry; None where the name does not contain it.
    """

    time_us: int
    writer: str
    sequence: int
    last_us: int | None = None

    @property
    def name(self) -> str:
        """The file's name; names sort by time."""
        last = "" if self.last_us is None else f"-{self.last_us:017d}"
        return f"{self.time_us:017d}-{self.writer}-{self.sequence:012d}{last}"

    @property
    def order(self) -> tuple[int, int, str]:
        """What files are ordered by."""
        return self.time_us, self.sequence, self.writer

    @classmethod
    def named(cls, name: str) -> InboxFile | None:
        """The file of that name; None when it is no name of an inbox's file."""
        found = _NAME.fullmatch(name)
        if not found:
            return None
        return cls(int(found[1]), found[2], int(found[3]), int(found[4]) if found[4] else None)


def newest_time_us(names: Iterable[str]) -> int:
    """Returns the latest time of an entry in files of these names, 0 where there is none."""
    files = (InboxFile.named(name) for name in names)
    return max((max(file.time_us, file.last_us or 0) for file in files if file is not None), default=0)


def inbox_folder(publication: str) -> str:
    """The folder of a publication's inbox, relative to the home."""
    return f"{publication}/inbox"


class InboxFolder(Protocol):
    """Where a writer puts whole files."""

    def put(self, name: str, content: bytes) -> None:
        """Puts a file there for good: when this returns, no crash takes it away.

        Raises:
            OSError, RetriableError: it is not there.
        """

    def used_bytes(self) -> int:
        """What the files there take up.

        Raises:
            OSError, RetriableError: the storage didn't answer.
        """

    def newest_us(self) -> int:
        """The latest time of an entry in the files there, of any writer; 0 where there is none.

        Raises:
            OSError, RetriableError: the storage did not respond.
        """


class FileOperations(Protocol):
    """What a local disk does, one step at a time."""

    def write(self, name: str, content: bytes) -> None:
        """Writes a new file and makes its content durable (fsync), but not its name."""

    def rename(self, source: str, target: str) -> None:
        """Gives a file another name in the same folder, at once."""

    def sync_folder(self) -> None:
        """Makes the names durable."""

    def discard(self, name: str) -> None:
        """Removes a file; nothing happens when it is not there."""

    def used_bytes(self) -> int:
        """What the files take up."""

    def names(self) -> Iterable[str]:
        """The names of the files."""


class LocalInboxFolder:
    """A folder on a disk that may lose power at any moment."""

    def __init__(self, steps: FileOperations) -> None:
        self._steps = steps

    def put(self, name: str, content: bytes) -> None:
        temporary = f".{name}"
        try:
            self._steps.write(temporary, content)
            self._steps.rename(temporary, name)
            self._steps.sync_folder()
        except OSError:
            # The sender receives an error, so nothing of the notification may stay.
            for leftover in (temporary, name):
                with suppress(OSError):
                    self._steps.discard(leftover)
            raise

    def used_bytes(self) -> int:
        return self._steps.used_bytes()

    def newest_us(self) -> int:
        return newest_time_us(self._steps.names())


class ObjectStoreInboxFolder:
    def __init__(self, storage: FileTree, folder: str) -> None:
        self._storage = storage
        self._folder = folder

    def put(self, name: str, content: bytes) -> None:
        path = f"{self._folder}/{name}"
        try:
            self._storage.write(path, content)
        except RetriableError:
            # What was lost may be the response and not the file, and the sender receives an error.
            with suppress(RetriableError):
                self._storage.remove(path)
            raise

    def used_bytes(self) -> int:
        # A look at each file would cost a request, and fail where a run takes one out meanwhile.
        return self._storage.bytes_in(self._folder)

    def newest_us(self) -> int:
        return newest_time_us(self._storage.files(self._folder))


class DiskOperations:
    """The steps of a real local disk, in one folder, which is made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        _make_durable(folder)

    def write(self, name: str, content: bytes) -> None:
        with (self._folder / name).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, source: str, target: str) -> None:
        (self._folder / source).rename(self._folder / target)

    def sync_folder(self) -> None:
        _sync(self._folder)

    def discard(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def used_bytes(self) -> int:
        total = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # a reader takes files away meanwhile
                    total += entry.stat().st_size
        return total

    def names(self) -> Iterable[str]:
        with os.scandir(self._folder) as entries:
            return [entry.name for entry in entries]


def open_inbox_folder(storage: FileTree, publication: str) -> InboxFolder:
    """Opens a publication's inbox for its writer.

    Raises:
        OSError: the folder can't be made.
    """
    folder = inbox_folder(publication)
    if isinstance(storage.filesystem, fs.LocalFileSystem):
        return LocalInboxFolder(DiskOperations(Path(storage.path(folder))))
    return ObjectStoreInboxFolder(storage, folder)


def _make_durable(folder: Path) -> None:
    made = [level for level in (folder, *folder.parents) if not level.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for level in made:
        _sync(level.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
