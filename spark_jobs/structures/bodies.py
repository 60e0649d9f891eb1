"""Bodies of accepted structures, kept beside their narrow rows so that they can be read in any order.

The order of sending follows from what structures refer to, and landing has the order of reading: without these files,
each record would cost the reading of a row group.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa

from contexture.storage.home import Storage

_CODEC = "zstd"
_LEVEL = 1
_OPEN_FILES = 64


class Place(NamedTuple):
    """Where a body lies: the number of its unit, the bytes it takes there, and those that it has."""

    unit: int
    offset: int
    length: int
    size: int


class BodyStream:
    """Reads a body that lies in memory, until it is let go.

    What has read from it may live on in circles of references, and would hold large bodies until these are found.
    """

    def __init__(self, body: Any) -> None:
        self._body = body
        self._place = 0

    def read(self, size: int) -> bytes:
        """At most so many bytes."""
        piece = self._body.slice(self._place, min(size, len(self._body) - self._place)).to_pybytes()
        self._place += len(piece)
        return bytes(piece)

    def seekable(self) -> bool:
        """It can be read twice."""
        return True

    def tell(self) -> int:
        """How far it was read."""
        return self._place

    def seek(self, place: int) -> None:
        """Reads on from there."""
        self._place = place

    def __enter__(self) -> BodyStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._body, self._place = pa.py_buffer(b""), 0


class BodyFile:
    """Takes the bodies of one unit, one behind the other."""

    def __init__(self, unit: int, stream: Any) -> None:
        self._unit = unit
        self._stream = stream
        self._offset = 0
        self._codec = pa.Codec(_CODEC, compression_level=_LEVEL)

    def put(self, body: Any) -> Place:
        """Appends a body (a buffer)."""
        packed = self._codec.compress(body)
        self._stream.write(packed)
        place = Place(self._unit, self._offset, packed.size, len(body))
        self._offset += packed.size
        return place


@contextmanager
def body_file(storage: Storage, work: str, unit: int) -> Iterator[BodyFile]:
    """A file for the bodies of one unit; it is there when the block ends without an error."""
    with storage.replacing(_path(work, unit)) as path, storage.filesystem.open_output_stream(path) as stream:
        yield BodyFile(unit, stream)


class Bodies:
    """Reads bodies by their places; the last one is remembered, because it may go to several topics."""

    def __init__(self, storage: Storage, work: str) -> None:
        self._storage = storage
        self._work = work
        self._codec = pa.Codec(_CODEC)
        self._files: OrderedDict[int, Any] = OrderedDict()
        self._last: tuple[Place, Any] | None = None

    def __enter__(self) -> Bodies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def at(self, place: Place) -> Any:
        """The body that lies there, as a buffer."""
        if self._last is None or self._last[0] != place:
            # Two large ones at once would be one too many.
            self._last = None
            packed = self._file(place.unit).read_at(place.length, place.offset)
            self._last = (place, self._codec.decompress(packed, decompressed_size=place.size))
        return self._last[1]

    def _file(self, unit: int) -> Any:
        if unit not in self._files:
            if len(self._files) >= _OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            self._files[unit] = self._storage.filesystem.open_input_file(self._storage.path(_path(self._work, unit)))
        self._files.move_to_end(unit)
        return self._files[unit]


def _path(work: str, unit: int) -> str:
    return f"{work}/bodies/{unit:06d}.zst"
