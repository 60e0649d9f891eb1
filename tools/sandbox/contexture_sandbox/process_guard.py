"""Runs one command, and ends all of its processes when the process that wanted it has ended.

`contexture_sandbox.processes` starts this file as a program of its own; it uses the standard library alone, so that it
costs some milliseconds and a few megabytes. When the owner is gone, however it went, the command and everything it
started are ended and the given folders removed. A death signal alone could not do that: it hits only one process, comes
already when the starting *thread* ends, and leaves the folders.

    process_guard.py OWNER_PID GRACE_SECONDS [FOLDER_TO_REMOVE …] -- COMMAND …

The first line on standard output is the command's process id; the exit code is the command's (128 + n after signal n).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

_DEATH_SIGNAL = 1
_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.1


def main(arguments: list[str]) -> int:
    """Runs the command of `arguments` to its end, or to its owner's; returns its exit code."""
    split = arguments.index("--")
    owner, grace_seconds, *folders = arguments[:split]
    # Processes whose parent ended become ours, so that they can be found and ended too.
    _control_process(_CHILD_SUBREAPER, 1)
    child = _start(arguments[split + 1 :])
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.close()
    orphaned = _wait(child, int(owner))
    if orphaned:
        _end(child, float(grace_seconds))
    _end_descendants()
    if orphaned:
        _remove(folders)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    # The command writes to this program's standard error, because standard output carries the process id to the owner.
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        start_new_session=True,
        preexec_fn=_prepare,
    )


def _prepare() -> None:
    # Shells start background jobs with SIGINT ignored, which would be inherited here.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _control_process(_DEATH_SIGNAL, signal.SIGKILL)


def _control_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wait(child: subprocess.Popen[bytes], owner: int) -> bool:
    """Whether the owner ended before the child did."""
    while os.getppid() == owner:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_POLL_SECONDS)
            return False
    return True


def _end(child: subprocess.Popen[bytes], grace_seconds: float) -> None:
    if grace_seconds > 0:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace_seconds)
    child.kill()
    child.wait()


def _remove(folders: list[str]) -> None:
    # Process guards of one owner may share a folder, and another's command may still write to it for a moment.
    for _ in range(50):
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        if not any(map(os.path.exists, folders)):
            return
        time.sleep(0.1)


def _end_descendants() -> None:
    for _ in range(100):
        orphans = _children()
        if not orphans:
            return
        for process in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for process in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
        time.sleep(0.01)


def _children() -> list[int]:
    me = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    # Signals to the command's group are not for this program; its owner ends it by ending the command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
