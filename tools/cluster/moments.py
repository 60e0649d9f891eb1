"""Finding the processes that are in the middle of something, to kill one of them there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from contexture.errors import RetriableError

Found = TypeVar("Found")
PATIENCE_SECONDS = 240.0
_PAUSE_SECONDS = 0.1


def await_found(look: Callable[[], Found | None], what: str, seconds: float = PATIENCE_SECONDS) -> Found:
    """What `look` finds in the end.

    Raises:
        RetriableError: nothing was found in time.
    """
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise RetriableError(f"no {what} within {seconds:.0f} s", next_step="look at the logs of the services")
        time.sleep(_PAUSE_SECONDS)
    return found


def executor_at_work(workers: Iterable[int]) -> int | None:
    """The process id of an executor of these Spark workers that runs Python for a task; None when none does."""
    children = _children()
    for worker in workers:
        for process in children.get(worker, ()):
            if "CoarseGrainedExecutorBackend" in _command_line(process) and _python_workers(process, children):
                return process
    return None


def descendants(root: int) -> set[int]:
    """The process and all that it and its children have started."""
    children, found, waiting = _children(), set[int](), [root]
    while waiting:
        process = waiting.pop()
        found.add(process)
        waiting += children.get(process, ())
    return found


def owner_of(process: int, roots: Mapping[str, int]) -> str | None:
    """The name of the process among `roots` that has started another one, over whatever lies between."""
    return next((name for name, root in roots.items() if process in descendants(root)), None)


def memory_mib(root: int) -> float:
    """The memory of a process and what it has started, what several share counted in parts (PSS), in MiB."""
    return sum(map(_pss_kib, descendants(root))) / 1024


def _python_workers(executor: int, children: Mapping[int, list[int]]) -> bool:
    # The daemon forks a worker for each task.
    return any(children.get(daemon) for daemon in children.get(executor, ()))


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def _command_line(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _pss_kib(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
