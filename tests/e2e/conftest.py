"""The demo and the stack as their user runs them: as commands, from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


class Command:
    """A running `python -m contexture_sandbox …` and what it has printed so far."""

    def __init__(self, *words: str, log: Path, variables: Mapping[str, str] | None = None) -> None:
        self.log = log
        own = {"COLUMNS": "200", "PYTHONUNBUFFERED": "1", "TMPDIR": str(log.parent)}
        environment = {**os.environ, **(variables or {}), **own}
        command = [sys.executable, "-m", "contexture_sandbox", *words]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )

    @property
    def text(self) -> str:
        """What it has printed."""
        return self.log.read_text(errors="replace")

    def await_text(self, expected: str, seconds: float) -> None:
        """Waits until it has printed something."""
        deadline = time.monotonic() + seconds
        while expected not in self.text:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.text[-4000:]}"
            assert time.monotonic() < deadline, f"no {expected!r} within {seconds} s:\n{self.text[-4000:]}"
            time.sleep(0.5)

    def interrupt(self, seconds: float) -> int:
        """Ctrl-C; gives the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(seconds)

    def end(self) -> None:
        """Ends it whatever it does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(90)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def command(tmp_path: Path) -> Iterator[type[Command]]:
    """Starts commands that are ended with the test."""
    started: list[Command] = []

    class Started(Command):
        def __init__(self, *words: str, variables: Mapping[str, str] | None = None) -> None:
            super().__init__(*words, log=tmp_path / f"output-{len(started)}.log", variables=variables)
            started.append(self)

    yield Started
    for one in reversed(started):
        one.end()
