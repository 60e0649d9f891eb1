"""A reader's terminal: a folder, variables, and what is typed there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from builders.pages import PROJECT

PATIENCE_SECONDS = 1800.0
"""For what takes seconds, or some minutes with a network, on a machine that does nothing else."""
OURS = ("AIRFLOW", "CONTEXTURE")


class Terminal:
    """A shell in a folder, with the variables that were set there; `contexture` and `python` are this environment's."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        own = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self.variables = {**own, "PATH": path, "COLUMNS": "200", **variables}

    def set(self, script: str) -> None:
        """Runs a script and keeps the variables that it exports."""
        printed = self.run(f"{script}\nenv -0")
        self.variables = dict(each.split("=", 1) for each in printed.stdout.split("\0") if "=" in each)

    def run(self, script: str, *, code: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a script, which ends as expected; `given` is its standard input."""
        done = subprocess.run(
            ["bash", "-c", f"set -e -o pipefail\n{script}"],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            input=given,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == code, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    @contextmanager
    def beside(self, script: str) -> Iterator[str]:
        """A command that serves until Ctrl-C, in a terminal of its own; gives the first line that it prints."""
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**self.variables, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().strip()
                assert process.poll() is None, f"{script}\nended with {process.returncode}"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
                process.wait(PATIENCE_SECONDS)

    def json(self, script: str, *, code: int = 0) -> Any:
        """What a command answers with `--json`."""
        return json.loads(self.run(f"{script} --json", code=code).stdout)


def behind_make(script: str) -> list[str]:
    """The words that `make …` would execute at last, without its Python; it makes nothing, and installs nothing."""
    command = re.sub(r"^make\b", "make --dry-run --no-print-directory", script.split("  #")[0].strip())
    # A make that runs these tests would pass its own options to this one.
    own = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    done = subprocess.run(["bash", "-c", command], cwd=PROJECT, env=own, capture_output=True, text=True, check=True)
    *_, last = done.stdout.replace("\\\n", " ").strip().splitlines()
    words = last.removeprefix("exec ").split()
    assert words[0] == ".venv/bin/python", last
    return words[1:]
