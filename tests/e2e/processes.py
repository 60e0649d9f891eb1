"""What runs and listens on this machine, read from /proc."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LISTENING = "0A"
LOOPBACK = frozenset({"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"})
# In /proc/<pid>/stat, counted from behind the name.
_STATE, _PARENT, _START = 0, 1, 19


@dataclass(frozen=True, slots=True)
class Process:
    """One process for ever: its number is given to another one when it has ended.

    Attributes:
        pid: its number.
        started_ticks: when it was started, in clock ticks since the machine was.
    """

    pid: int
    started_ticks: int


def descendants(root: int) -> set[Process]:
    """The process and all that it and its children have started, also in sessions of their own."""
    stats = {pid: stat for pid in _pids() if (stat := _stat(pid))}
    found = {root}
    while more := {pid for pid, stat in stats.items() if int(stat[_PARENT]) in found} - found:
        found |= more
    return {Process(pid, int(stats[pid][_START])) for pid in found if pid in stats}


def listeners(processes: Iterable[Process]) -> dict[tuple[str, int], Process]:
    """Address (as the kernel writes it) and port of every listening TCP socket of these processes, with its process."""
    owners = {inode: process for process in processes for inode in _socket_inodes(process.pid)}
    found: dict[tuple[str, int], Process] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in owners:
                address, port = fields[1].split(":")
                found[address, int(port, 16)] = owners[fields[9]]
    return found


def alive(processes: Iterable[Process]) -> set[Process]:
    """Those that still run (a finished process that its parent has not waited for counts as ended)."""
    return {process for process in processes if _runs(process)}


def command_line(process: Process) -> str:
    """What a process was started with; nothing once it has ended."""
    return _read(process, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def environment(process: Process) -> list[str]:
    """The variables a process was started with; nothing once it has ended."""
    return _read(process, "environ").decode(errors="replace").split("\0")


def _runs(process: Process) -> bool:
    stat = _stat(process.pid)
    return bool(stat) and int(stat[_START]) == process.started_ticks and stat[_STATE] != "Z"


def _read(process: Process, name: str) -> bytes:
    try:
        content = Path(f"/proc/{process.pid}/{name}").read_bytes()
    except OSError:
        return b""
    # Looked at after it was read: what has taken the number by then is another one's.
    return content if _runs(process) else b""


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process behind its name; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def _socket_inodes(pid: int) -> set[str]:
    inodes = set()
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            target = str(entry.readlink())
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except OSError:
        return inodes
    return inodes
