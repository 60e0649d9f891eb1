"""How much memory this process and all it started had at most: proportional shares, so that forks count once."""

from __future__ import annotations

import psutil

from tools.bench.repeated_look import RepeatedLook

_SECONDS = 0.5


class PeakMemory(RepeatedLook):
    """Looks twice a second while the block runs; `bytes` is the largest sum seen.

    Args:
        without: processes that are not counted, nor what they started.
    """

    def __init__(self, without: frozenset[int] = frozenset()) -> None:
        super().__init__(_SECONDS)
        self.bytes = 0
        self._without = without

    def look(self) -> None:
        """See `RepeatedLook`."""
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
