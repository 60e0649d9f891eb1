"""How much memory this process and all it started had at most: proportional shares, so that forks count once."""

from __future__ import annotations

import threading
from types import TracebackType

import psutil

_SECONDS = 0.5


class PeakMemory:
    """Looks twice a second while the block runs; `bytes` is the largest sum seen.

    Args:
        without: processes that are not counted, nor what they started.
    """

    def __init__(self, without: frozenset[int] = frozenset()) -> None:
        self.bytes = 0
        self._without = without
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            self.bytes = max(self.bytes, sum(self._proportional(process) for process in self._processes()))

    def _processes(self) -> list[psutil.Process]:
        return self._below(psutil.Process())

    def _below(self, process: psutil.Process) -> list[psutil.Process]:
        try:
            children = [child for child in process.children() if child.pid not in self._without]
        except psutil.NoSuchProcess:
            return []
        return [process, *(deeper for child in children for deeper in self._below(child))]

    def _proportional(self, process: psutil.Process) -> int:
        try:
            return int(process.memory_full_info().pss)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return 0
