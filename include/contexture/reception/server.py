"""An HTTP server for the reception alone."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from contexture.errors import ConfigurationError
from contexture.reception.patience import PatientConnection

MAXIMUM_REQUESTS = 512
"""Requests under way at once; the server answers 503 to more."""
_SHUTDOWN_SECONDS = 10


class ReceptionServer:
    """Serves an application at an address that is taken when this is made.

    Args:
        application: what is served.
        host: an address of this machine.
        port: 0 takes a free one.

    Raises:
        ConfigurationError: the address can't be taken.
    """

    def __init__(self, application: ASGIApp, host: str, port: int) -> None:
        self._listener = _listening(host, port)
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAXIMUM_REQUESTS,
                http=PatientConnection,
                ws="none",
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        """Serves until the process is told to stop, or `stop` is called; what was begun is answered."""
        with self._listener:
            self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """Ends `run`, called from another thread."""
        self._server.should_exit = True


def is_this_machine_only(host: str) -> bool:
    """Whether nobody else can reach that address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=MAXIMUM_REQUESTS)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} can't be listened on: {error.strerror or error}",
            next_step="choose another --port or --host",
        ) from error
