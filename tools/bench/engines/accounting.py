"""What processes have cost, from Linux' own books: processor time with all they started, open files, memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """One line of `/proc/PID/stat`.

    Attributes:
        parent: its process id.
        seconds: of processor time, with those of children that have ended and were waited for.
    """

    parent: int
    seconds: float

    @classmethod
    def parsed(cls, line: str, ticks: int = _TICKS) -> ProcessTimes:
        """From the line; the program's name in it may hold blanks and brackets."""
        words = line.rsplit(")", 1)[1].split()
        return cls(int(words[1]), sum(int(word) for word in words[11:15]) / ticks)


def all_times() -> dict[int, ProcessTimes]:
    """Returns the times of every visible process, also of ended ones that their parents have not waited for yet."""
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = ProcessTimes.parsed(stat.read_text())
        except OSError:
            continue
    return found


def tree_seconds(root: int, times: Mapping[int, ProcessTimes]) -> float:
    """Processor seconds of a process and all below it."""
    children: dict[int, list[int]] = {}
    for process, each in times.items():
        children.setdefault(each.parent, []).append(process)
    waiting, seconds = [root], 0.0
    while waiting:
        process = waiting.pop()
        seconds += times[process].seconds if process in times else 0.0
        waiting += children.get(process, ())
    return seconds


class ProcessorTime:
    """What the parts of a system have cost since it was made.

    Args:
        parts: process ids of each part's servers. Each is looked for under its process guard, which takes over what the
            server started and left: so that nothing is lost when an executor ends.
    """

    def __init__(self, parts: Mapping[str, Iterable[int]]) -> None:
        times = all_times()
        self._roots = {
            name: [times[pid].parent for pid in processes if pid in times] for name, processes in parts.items()
        }
        self._before = self._now(times)

    def seconds(self) -> dict[str, float]:
        """Processor seconds of each part."""
        return {name: now - self._before[name] for name, now in self._now(all_times()).items()}

    def _now(self, times: Mapping[int, ProcessTimes]) -> dict[str, float]:
        return {name: sum(tree_seconds(root, times) for root in roots) for name, roots in self._roots.items()}


def open_files(process: int) -> int:
    """How many files and connections a process has open."""
    return len(list((PROC / str(process) / "fd").iterdir()))


def mapped_files(process: int, ending: str) -> int:
    """How many files of such names a process has mapped into its memory."""
    lines = (PROC / str(process) / "maps").read_text().splitlines()
    return sum(line.endswith(ending) for line in lines)


def command_line(process: int) -> str:
    """What a process was started with, words parted by blanks; empty when it has gone."""
    try:
        return (PROC / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
