"""The bodies of landed structures in files of their own, by position.

Landing has the order of reading, and the order of sending follows from references. Without these files, each record
would cost the reading of a row group.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from io import SEEK_SET, RawIOBase
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from contexture.storage.folder import StoredFolder

_CODEC = "zstd"
_LEVEL = 1
_OPEN_FILES = 64


class BodyPosition(NamedTuple):
    """The position of a body: its unit, offset and length in the unit's file, and size when decompressed."""

    unit: int
    offset: int
    length: int
    size: int


class BodyStream(RawIOBase):
    """A stream over a body in memory, which it releases when it is closed.

    Readers may live on in cycles of references, and would otherwise hold large bodies until these are collected.
    """

    def __init__(self, body: Any) -> None:
        self._body = body
        self._position = 0

    def read(self, size: int = -1, /) -> bytes:
        """Reads at most this many bytes; without a limit, all that are left."""
        left = len(self._body) - self._position
        piece = self._body.slice(self._position, left if size < 0 else min(size, left)).to_pybytes()
        self._position += len(piece)
        return bytes(piece)

    def seekable(self) -> bool:
        """Returns True, because a body may be read twice."""
        return True

    def seek(self, offset: int, whence: int = SEEK_SET, /) -> int:
        """Continues at an offset from the start; the base class also queries the present position by it."""
        self._position = offset if whence == SEEK_SET else self._position + offset
        return self._position

    def close(self) -> None:
        """Releases the body."""
        self._body, self._position = pa.py_buffer(b""), 0
        super().close()


class BodyFile:
    """A file under construction for the bodies of one unit."""

    def __init__(self, unit: int, stream: Any) -> None:
        self._unit = unit
        self._stream = stream
        self._offset = 0
        self._codec = pa.Codec(_CODEC, compression_level=_LEVEL)

    def append(self, body: Any) -> BodyPosition:
        """Appends a body (a buffer), and returns its position."""
        packed = self._codec.compress(body)
        self._stream.write(packed)
        position = BodyPosition(self._unit, self._offset, packed.size, len(body))
        self._offset += packed.size
        return position


@contextmanager
def body_file(work: StoredFolder, unit: int) -> Iterator[BodyFile]:
    """Opens a file for the bodies of one unit, which gets its name when the block ends without an error."""
    with work.output_stream(_body_file(unit)) as stream:
        yield BodyFile(unit, stream)


class Bodies:
    """A reader of bodies by position, which remembers the last one because it may go to several topics."""

    def __init__(self, work: StoredFolder) -> None:
        self._work = work
        self._codec = pa.Codec(_CODEC)
        self._files: OrderedDict[int, Any] = OrderedDict()
        self._last: tuple[BodyPosition, Any] | None = None

    def __enter__(self) -> Bodies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def read(self, position: BodyPosition) -> Any:
        """Returns the body at a position, as a buffer."""
        if self._last is None or self._last[0] != position:
            # Memory has room for one large body, not for two.
            self._last = None
            packed = self._file(position.unit).read_at(position.length, position.offset)
            self._last = (position, self._codec.decompress(packed, decompressed_size=position.size))
        return self._last[1]

    def _file(self, unit: int) -> Any:
        if unit not in self._files:
            if len(self._files) >= _OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            self._files[unit] = self._work.open_input(_body_file(unit))
        self._files.move_to_end(unit)
        return self._files[unit]


def _body_file(unit: int) -> str:
    return f"bodies/{unit:06d}.zst"
