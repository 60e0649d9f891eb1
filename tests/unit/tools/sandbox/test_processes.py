"""A child process ends with its owner, whatever happens to that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.processes import ChildProcess, ProcessOptions

INTERRUPTIBLE = """
import time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("bye")
"""
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def shell(script: str, log: Path, *, grace_seconds: float = 60.0) -> ChildProcess:
    return ChildProcess(["sh", "-c", script], ProcessOptions(log=log, grace_seconds=grace_seconds))


def test_its_output_is_in_the_log_and_its_exit_code_is_known(tmp_path: Path) -> None:
    child = shell("echo out; echo error >&2; exit 3", tmp_path / "log")
    assert child.wait(60) == 3
    assert (child.running, child.exit_code) == (False, 3)
    assert child.log_tail() == "out\nerror"
    assert child.log_tail(1) == "error"


def test_it_runs_in_the_given_folder_with_the_given_environment(tmp_path: Path) -> None:
    options = ProcessOptions(log=tmp_path / "log", environment={"PATH": "/usr/bin:/bin", "A": "b"}, folder=tmp_path)
    child = ChildProcess(["sh", "-c", 'echo "$A$HOME"; pwd'], options)
    child.wait(60)
    assert child.log_tail() == f"b\n{tmp_path}"


def test_it_ends_when_asked(tmp_path: Path) -> None:
    with shell("exec sleep 600", tmp_path / "log") as child:
        assert child.terminate() == 128 + signal.SIGTERM


def test_it_can_be_interrupted_instead(tmp_path: Path) -> None:
    child = ChildProcess([sys.executable, "-c", INTERRUPTIBLE], ProcessOptions(log=tmp_path / "log", grace_seconds=60))
    assert wait_until(lambda: child.log_tail() == "ready")
    assert child.terminate(interrupt=True) == 0
    assert child.log_tail() == "ready\nbye"


def test_it_is_killed_when_it_does_not_end_in_time(tmp_path: Path) -> None:
    child = shell(STUBBORN, tmp_path / "log", grace_seconds=0.2)
    assert wait_until(lambda: child.log_tail() == "ready")
    assert child.terminate() == 128 + signal.SIGKILL


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    child = shell("setsid sleep 600 & echo $!; wait", tmp_path / "log")
    assert wait_until(lambda: child.log_tail() != "")
    grandchild = int(child.log_tail())
    assert alive(grandchild)
    child.kill()
    assert not alive(grandchild)


def test_it_has_a_session_of_its_own(tmp_path: Path) -> None:
    with shell("exec sleep 600", tmp_path / "log") as child:
        session = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[3])
        assert session == child.pid


def test_waiting_too_long_is_an_error(tmp_path: Path) -> None:
    with shell("exec sleep 600", tmp_path / "log") as child, pytest.raises(RetriableError, match="still runs after"):
        child.wait(0.1)


def test_an_unknown_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the program no-such-program was not found"):
        ChildProcess(["no-such-program"], ProcessOptions(log=tmp_path / "log"))


OWNER = """
import sys, time
from pathlib import Path
from contexture_sandbox.processes import ChildProcess, ProcessOptions
folder = Path(sys.argv[1])
options = ProcessOptions(log=folder / "log", grace_seconds=0.2, remove=(folder,))
child = ChildProcess(["sh", "-c", sys.argv[2]], options)
while "ready" not in child.log_tail(): time.sleep(0.02)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_it_and_its_folder_go_when_the_owner_dies(tmp_path: Path, death: signal.Signals) -> None:
    folder = tmp_path / "data"
    command = [sys.executable, "-c", OWNER, str(folder), STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        process = int(owner.stdout.readline())
        assert alive(process)
        owner.send_signal(death)
    assert wait_until(lambda: not alive(process))
    assert wait_until(lambda: not folder.exists())


def test_it_goes_also_when_its_process_guard_is_killed(tmp_path: Path) -> None:
    with shell("exec sleep 600", tmp_path / "log") as child:
        guard = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        assert wait_until(lambda: not alive(child.pid))
