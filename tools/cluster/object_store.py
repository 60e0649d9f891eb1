"""An S3 API from a package: moto's server, in an environment of its own.

It wants an older version of a library than the project has, so it is installed apart, once for each machine, into the
cache: exactly what `object_store.txt` names, by hash.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from contexture.errors import RetriableError
from contexture.java.cache import exclusive
from contexture_sandbox.ports import LOOPBACK, free_port
from contexture_sandbox.processes import ProcessOptions
from tools.cluster.servers import start_server

PINS = Path(__file__).with_name("object_store.txt")
BUCKET = "contexture"
REGION = "us-east-1"
_INSTALL_SECONDS = 600


class ObjectStore:
    """A new, empty S3 with one bucket on a free port of 127.0.0.1; a context manager. It keeps all in memory."""

    def __init__(self, log: Path, progress: Callable[[str], None]) -> None:
        self.port = free_port()
        self._secret = secrets.token_urlsafe(24)
        self._log = log
        self._progress = progress

    @property
    def url(self) -> str:
        """Where its interface is."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def home(self) -> str:
        """The address that CONTEXTURE_HOME gets."""
        return f"s3://{BUCKET}/home"

    @property
    def variables(self) -> dict[str, str]:
        """The variables with which Airflow's processes and Spark's executors read `home` from this server."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "contexture",
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            # Else a client without an answer looks for the machine's cloud.
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def __enter__(self) -> Self:
        program = installed(self._progress)
        options = ProcessOptions(log=self._log)
        self.process = start_server("the object store", self._command(program), options, port=self.port)
        httpx.put(f"{self.url}/{BUCKET}", timeout=60).raise_for_status()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()

    def _command(self, program: Path) -> list[str | Path]:
        return [program, "-H", LOOPBACK, "-p", str(self.port)]


def installed(progress: Callable[[str], None]) -> Path:
    """The program of the server; the first call on a machine installs it (some 80 MB).

    Raises:
        RetriableError: the registry could not be reached, or delivered something else than is pinned.
    """
    name = f"object-store-{hashlib.sha256(PINS.read_bytes()).hexdigest()[:12]}-{sys.version_info.minor}"
    with exclusive("object-store") as cache:
        folder = cache / name
        if not (folder / "installed").exists():
            progress("installing an S3 server, once for this machine")
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder)
            (folder / "installed").touch()
    return folder / "bin" / "moto_server"


def _install(folder: Path) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    python = folder / "bin" / "python"
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(folder)],
        ["pip", "sync", "--quiet", "--require-hashes", "--python", str(python), str(PINS)],
    ):
        done = subprocess.run([uv, *words], capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS)
        if done.returncode:
            raise RetriableError(
                f"the S3 server could not be installed: {done.stderr[-500:].strip()}",
                next_step="see whether the package registry can be reached, then try again",
            )
