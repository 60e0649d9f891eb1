"""What runs and listens on this machine, read from /proc."""

from __future__ import annotations

from pathlib import Path

LISTENING = "0A"
LOOPBACK = frozenset({"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"})


def descendants(root: int) -> set[int]:
    """The process and all that it and its children have started, also in sessions of their own."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(after_name[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listeners(pids: set[int]) -> dict[tuple[str, int], int]:
    """Address (as the kernel writes it) and port of every listening TCP socket of these processes, with its process."""
    owners = {inode: pid for pid in pids for inode in _socket_inodes(pid)}
    found: dict[tuple[str, int], int] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in owners:
                address, port = fields[1].split(":")
                found[address, int(port, 16)] = owners[fields[9]]
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that still run (a finished process that nobody has asked after counts as ended)."""
    return {pid for pid in pids if _state(pid) not in {None, "Z"}}


def command_line(pid: int) -> str:
    """What a process was started with."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def environment(pid: int) -> list[str]:
    """The variables a process was started with."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _state(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


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
