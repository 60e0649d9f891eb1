"""What a second terminal has to know for `contexture` and `airflow` beside a running sandbox: a file to be sourced."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contexture_sandbox.airflow import AirflowSettings

FILE = "shell.env"
# With the settings of Airflow its own command line speaks to this one, and not to an empty one in the home folder.
_OF_COMMANDS = ("CONTEXTURE_HOME", "CONTEXTURE_PUBLICATIONS", "CONTEXTURE_DATABASE", "AIRFLOW", "PYTHONPATH")


@contextmanager
def shell_file(folder: Path, settings: AirflowSettings) -> Iterator[Path]:
    """A file in the folder that only its owner can read, for it holds the login; it goes with the block.

    Args:
        folder: where it is made; one that goes away, and not CONTEXTURE_HOME, which holds no secrets.
        settings: of the sandbox's Airflow.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in _variables(settings).items())
        file.write(f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n')
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _variables(settings: AirflowSettings) -> Mapping[str, str]:
    of_airflow = settings.environment()
    return {name: value for name, value in of_airflow.items() if name.startswith(_OF_COMMANDS)} | {
        "CONTEXTURE_AIRFLOW_URL": settings.url,
        "CONTEXTURE_AIRFLOW_USER": settings.login.user,
        "CONTEXTURE_AIRFLOW_PASSWORD": settings.login.password,
    }
