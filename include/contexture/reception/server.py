"""An HTTP server for the reception alone, with limits on slow connections.

uvicorn waits without limit for the headers of a first request, and every connection counts towards its concurrent
requests: a client that reaches the port could block notifiers by opening connections and sending nothing.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from contexture.errors import ConfigurationError


class TimeLimitedConnection(H11Protocol):
    """One connection; h11 refuses headers of more than 64 kB in all."""

    HEAD_SECONDS: ClassVar[float] = 10.0
    """How long the headers of a request may take."""

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Closes the connection in time, unless the headers come to their end."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self.HEAD_SECONDS, self.transport.close)

    def _forget(self) -> None:
        due, self._head_due = self._head_due, None
        if due is not None:
            due.cancel()


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
                http=TimeLimitedConnection,
                ws="none",
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        """Serves until a signal stops the process, or `stop` is called; requests under way get their response."""
        with self._listener:
            self._server.run(sockets=[self._listener])

    def stop(self) -> None:
        """Ends `run`, called from another thread."""
        self._server.should_exit = True


def is_this_machine_only(host: str) -> bool:
    """Whether only this machine can reach that address."""
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
