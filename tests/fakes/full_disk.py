"""A filesystem without room."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class FullDisk:
    """A filesystem that has room for no more bytes; everything else works."""

    def __init__(self, filesystem: Any, room: int = 0) -> None:
        self._filesystem = filesystem
        self._room = room

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    @contextmanager
    def open_output_stream(self, path: str) -> Iterator[Any]:
        with self._filesystem.open_output_stream(path) as stream:
            yield _Limited(stream, self._room)


class _Limited:
    def __init__(self, stream: Any, room: int) -> None:
        self._stream = stream
        self._room = room

    def write(self, content: bytes) -> None:
        self._stream.write(content[: self._room])
        if len(content) > self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
