"""A storage that dies at one of its changes, as a killed process would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from contexture.storage.home import Home


class KilledError(Exception):
    """The process is gone."""


class FailingStorage(Home):
    """Lets `changes` files be put in place or removed; the next change never happens, and nothing after it."""

    def __init__(self, root: str, changes: int) -> None:
        super().__init__(root)
        self.changes = changes

    @contextmanager
    def write_atomically(self, relative: str) -> Iterator[str]:
        with super().write_atomically(relative) as temporary:
            yield temporary
            self._change()

    def remove(self, relative: str) -> None:
        self._change()
        super().remove(relative)

    def _change(self) -> None:
        if self.changes == 0:
            raise KilledError
        self.changes -= 1
