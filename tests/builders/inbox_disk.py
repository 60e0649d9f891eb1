"""A disk that loses power: what was not made durable may be gone afterwards, or may not."""

from __future__ import annotations

import errno
from collections.abc import Callable

from contexture.storage.inbox_files import InboxFile, newest_time_us


class PowerLostError(BaseException):
    """The machine is gone; no clean-up of the program runs on the disk any more."""


class UncertainDisk:
    """`Steps` of a local disk that stops at a step.

    Args:
        steps_left: the step before which the power goes; each call has one or two.
        survives: asked for everything not yet durable when the power goes: does it survive?
    """

    def __init__(self, steps_left: int, survives: Callable[[], bool]) -> None:
        self._steps_left = steps_left
        self._survives = survives
        self._contents: dict[str, bytes] = {}  # by inode, as the running machine sees it
        self._synced: set[str] = set()
        self._names: dict[str, str] = {}
        self._durable_names: dict[str, str] = {}

    def write(self, name: str, content: bytes) -> None:
        self._step()
        self._names[name] = name
        self._contents[name] = content
        self._step()
        self._synced.add(name)

    def rename(self, source: str, target: str) -> None:
        self._step()
        self._names[target] = self._names.pop(source)

    def sync_folder(self) -> None:
        self._step()
        self._durable_names = dict(self._names)

    def discard(self, name: str) -> None:
        self._step()
        self._names.pop(name, None)

    def used_bytes(self) -> int:
        return sum(len(self._contents[inode]) for inode in self._names.values())

    def names(self) -> list[str]:
        return list(self._names)

    def after_power_returns(self) -> dict[str, bytes]:
        """The files of an inbox that are there, by name, with what is left of their content."""
        names = dict(self._durable_names)
        for name, inode in self._names.items():
            if name not in names and self._survives():
                names[name] = inode
        return {name: self._left_of(inode) for name, inode in names.items() if InboxFile.named(name)}

    def _left_of(self, inode: str) -> bytes:
        content = self._contents[inode]
        return content if inode in self._synced or self._survives() else content[: len(content) // 2]

    def _step(self) -> None:
        if self._steps_left == 0:
            raise PowerLostError
        self._steps_left -= 1


class FullShelf:
    """A `Shelf` on a full disk, until there is room again."""

    def __init__(self) -> None:
        self.full = True
        self.files: dict[str, bytes] = {}

    def put(self, name: str, content: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.files[name] = content

    def used_bytes(self) -> int:
        return sum(len(content) for content in self.files.values())

    def newest_us(self) -> int:
        return newest_time_us(self.files)
