"""Child processes that never outlive their owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from contexture.errors import ConfigurationError, RetriableError

_PROCESS_GUARD = Path(__file__).with_name("process_guard.py")
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """How a child process is run.

    Attributes:
        log: the file its standard output and error are appended to.
        environment: its whole environment; the owner's when None.
        folder: its working folder; the owner's when None.
        grace_seconds: how long it may take to end after a request, before it is killed.
        remove: folders to delete when the owner dies without having stopped it.
    """

    log: Path
    environment: Mapping[str, str] | None = None
    folder: Path | None = None
    grace_seconds: float = 10.0
    remove: tuple[Path, ...] = ()


class ChildProcess:
    """A running command in a session of its own: a Ctrl-C in the terminal reaches the owner, not the command.

    When the owner ends, also by `kill -9`, the command, whatever that started, and `options.remove` go as well.
    Used as a context manager it is terminated at the end.
    """

    def __init__(self, command: Sequence[str | Path], options: ProcessOptions) -> None:
        """Starts `command`.

        Raises:
            ConfigurationError: there is no such program.
        """
        self.command = tuple(str(word) for word in command)
        self.options = options
        search_path = None if options.environment is None else options.environment.get("PATH")
        if shutil.which(self.command[0], path=search_path) is None:
            raise ConfigurationError(
                f"the program {self.command[0]} was not found", next_step="install it or correct the path to it"
            )
        self._guard = self._start()
        self.pid = self._read_pid()

    @property
    def exit_code(self) -> int | None:
        """The exit code, 128 + n when signal n ended it, None while it runs."""
        return self._guard.poll()

    @property
    def running(self) -> bool:
        """Whether the command has not ended yet."""
        return self.exit_code is None

    def wait(self, timeout_seconds: float | None = None) -> int:
        """Waits for the end; gives the exit code.

        Raises:
            RetriableError: it still runs after `timeout_seconds`.
        """
        try:
            return self._guard.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise RetriableError(
                f"{Path(self.command[0]).name} (process {self.pid}) still runs after {timeout_seconds} s",
                next_step=f"read its log {self.options.log}",
            ) from error

    def terminate(self, *, interrupt: bool = False) -> int:
        """Asks the command to end (SIGTERM, or SIGINT), kills it after the grace time; gives the exit code."""
        self.signal(signal.SIGINT if interrupt else signal.SIGTERM)
        try:
            return self._guard.wait(self.options.grace_seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Kills the command (SIGKILL) and what it started; gives the exit code."""
        self.signal(signal.SIGKILL)
        return self._guard.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the command alone; nothing happens when it has ended."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def log_tail(self, lines: int = 20) -> str:
        """The last lines it wrote."""
        try:
            with self.options.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.terminate()

    def _start(self) -> subprocess.Popen[str]:
        options = self.options
        guard = [sys.executable, "-I", "-S", str(_PROCESS_GUARD), str(os.getpid()), str(options.grace_seconds)]
        options.log.parent.mkdir(parents=True, exist_ok=True)
        with options.log.open("ab") as log:
            return subprocess.Popen(
                [*guard, *map(str, options.remove), "--", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=None if options.environment is None else dict(options.environment),
                cwd=options.folder,
                start_new_session=True,
                text=True,
            )

    def _read_pid(self) -> int:
        if self._guard.stdout is None:  # pragma: no cover - it is a pipe
            raise RuntimeError
        with self._guard.stdout as answer:
            line = answer.readline().strip()
        if not line:
            raise ConfigurationError(
                f"{self.command[0]} could not be started", next_step=f"read {self.options.log} for the reason"
            )
        return int(line)
