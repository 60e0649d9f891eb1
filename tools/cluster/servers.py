"""A server as a child process: started, waited for until it takes connections, ended with its owner."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.ports import listening
from contexture_sandbox.processes import ChildProcess, ProcessOptions

START_SECONDS = 120.0
_PAUSE_SECONDS = 0.1


def package_folder(package: str) -> Path:
    """Returns the folder of an installed package that carries the programs of a server.

    Raises:
        ConfigurationError: the package is not installed.
    """
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError(
            f"the package {package.replace('_', '-')} is not installed", next_step="run `make cluster-test`"
        )
    return Path(next(iter(found.submodule_search_locations)))


def start_server(name: str, command: Sequence[str | Path], options: ProcessOptions, *, port: int) -> ChildProcess:
    """Starts a server and waits until its port answers.

    Raises:
        ConfigurationError: it ended; the last lines of its log are in the message.
        RetriableError: it did not answer in time.
    """
    process = ChildProcess(command, options)
    try:
        await_ready(name, process, lambda: listening(port))
    except BaseException:
        process.kill()
        raise
    return process


def await_ready(name: str, process: ChildProcess, is_ready: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Waits until a process does what it is for; raises as `start_server`."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if not process.running:
            raise ConfigurationError(
                f"{name} ended with exit code {process.exit_code}:\n{process.log_tail()}",
                next_step="correct what these lines of its log say",
            )
        if time.monotonic() > deadline:
            raise RetriableError(
                f"{name} was not ready within {seconds:.0f} s; its last lines:\n{process.log_tail()}",
                next_step="start it again when the machine is less busy",
            )
        time.sleep(_PAUSE_SECONDS)
