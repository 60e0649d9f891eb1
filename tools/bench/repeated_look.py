"""Looking at something again and again, in a thread beside what is measured."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class RepeatedLook(ABC):
    """Looks while the block runs.

    Args:
        every_seconds: how long it waits before each look.
    """

    def __init__(self, every_seconds: float) -> None:
        self._every_seconds = every_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @abstractmethod
    def look(self) -> None:
        """Takes what is to be seen now."""

    def _watch(self) -> None:
        while not self._ended.wait(self._every_seconds):
            self.look()
