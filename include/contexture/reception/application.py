"""The ASGI application that brokers notify, and a server for it alone: `POST /contexture/notify/<publication>`.

A 200 means that the notification is stored durably. The other responses describe what is wrong as NGSIv2 does:

    400  no notification, another service, a path or type outside the selection  401  no valid credentials
    404  no such publication                                                    405  another method than POST
    408  the body takes too long
    413  too large                                                              415  not JSON, not UTF-8, compressed
    503  can't be stored now; `Retry-After` is the time to wait, and nothing of it was stored
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Mapping
from ipaddress import ip_address
from typing import ClassVar

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from contexture.errors import ConfigurationError
from contexture.reception.targets import NotificationTarget
from contexture.sources.ngsi.notifications.notification import NotificationError
from contexture.sources.ngsi.notifications.parsing import read_notification
from contexture.storage.inbox_writer import InboxUnavailableError

CORRELATOR = "fiware-correlator"
BODY_SECONDS = 60.0
"""How long a body may take: what has arrived of it stays in memory."""

_KEPT = (
    "content-type",
    "fiware-service",
    "fiware-servicepath",
    CORRELATOR,
    "link",
    "ngsild-tenant",
    "ngsiv2-attrsformat",
)


def notification_headers(request: Request) -> dict[str, str]:
    """Returns the headers that describe the entities; credentials are not among them.

    Raises:
        NotificationError: one is there twice, so that its value is unclear.
    """
    kept: dict[str, str] = {}
    for name in _KEPT:
        values = request.headers.getlist(name)
        if len(values) > 1 and name != "link":
            raise NotificationError(f"the header {name} is there twice", next_step="send it once", status=400)
        if values:
            kept[name] = ", ".join(values)
    return kept


async def read_body(request: Request, maximum_bytes: int, *, seconds: float = BODY_SECONDS) -> bytes:
    """Reads the body; stops as soon as it is too large, or takes too long.

    Raises:
        NotificationError: too large, too slow, or compressed.
        starlette.requests.ClientDisconnect: the client went away before its end.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise NotificationError("the body is compressed", next_step="send it as it is", status=415)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > maximum_bytes:
        raise _too_large(maximum_bytes)
    try:
        async with asyncio.timeout(seconds):
            return await _pieces(request, maximum_bytes)
    except TimeoutError:
        raise NotificationError(
            f"the body did not arrive within {seconds:.0f} s", next_step="check the network between", status=408
        ) from None


async def _pieces(request: Request, maximum_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > maximum_bytes:
            raise _too_large(maximum_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(maximum_bytes: int) -> NotificationError:
    return NotificationError(
        f"the body has more than {maximum_bytes} bytes", next_step="notify fewer entities in one request", status=413
    )


_LARGE_BYTES = 64 << 10
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="contexture", Basic realm="contexture"'}


PREFIX = "/contexture/notify"


def reception(targets: Mapping[str, NotificationTarget], *, prefix: str = PREFIX) -> Starlette:
    """Builds the application that takes notifications for these publications, by their names.

    Args:
        targets: by name.
        prefix: the path before the name; empty where a server of many applications has removed it.
    """
    return Starlette(routes=[Route(f"{prefix}/{{publication}}", _Notify(targets).answer, methods=["POST"])])


class _Notify:
    def __init__(self, targets: Mapping[str, NotificationTarget]) -> None:
        self._targets = targets

    async def answer(self, request: Request) -> Response:
        target = self._targets.get(request.path_params["publication"])
        if not self._may_notify(request, target):
            return _respond(
                401, "Unauthorized", "no valid credentials were shown", {**_CHALLENGE, "Connection": "close"}
            )
        if target is None:
            return _respond(
                404, "NotFound", "no publication of this name receives notifications", {"Connection": "close"}
            )
        correlator = request.headers.get(CORRELATOR) or str(uuid.uuid4())
        response = await _accept(request, target, correlator)
        response.headers["Fiware-Correlator"] = correlator
        return response

    def _may_notify(self, request: Request, target: NotificationTarget | None) -> bool:
        if target is not None:
            return target.access.allows(request)
        # Only clients that may notify one publication learn that there is no other of a name.
        return any(known.access.allows(request) for known in self._targets.values())


async def _accept(request: Request, target: NotificationTarget, correlator: str) -> Response:
    try:
        headers = {**notification_headers(request), CORRELATOR: correlator}
        body = await read_body(request, target.maximum_bytes)
        if len(body) > _LARGE_BYTES:
            await asyncio.to_thread(_check, headers, body, target)
        else:
            _check(headers, body, target)
        await asyncio.wrap_future(target.inbox.submit(headers, body))
    except NotificationError as error:
        # What was not read of the body would be taken for the next request.
        return _respond(error.status, _NAMES[error.status], str(error), {"Connection": "close"})
    except InboxUnavailableError as error:
        return _respond(503, "ServiceUnavailable", str(error), {"Retry-After": str(error.retry_after_seconds)})
    except ClientDisconnect:
        return Response(status_code=400)
    return Response(status_code=200)


def _check(headers: Mapping[str, str], body: bytes, target: NotificationTarget) -> None:
    # Anyone who names no service notifies for the broker's default tenant.
    target.check(read_notification(headers, body, default_service="", maximum_bytes=target.maximum_bytes))


_NAMES = {400: "BadRequest", 408: "RequestTimeout", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType"}


def _respond(status: int, name: str, description: str, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse({"error": name, "description": description}, status_code=status, headers=dict(headers))


class TimeLimitedConnection(H11Protocol):
    """One connection; h11 refuses headers of more than 64 kB in all.

    uvicorn waits without limit for the headers of a first request, and every connection counts towards its concurrent
    requests: a client that reaches the port could block notifiers by opening connections and sending nothing.
    """

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
            f"{host}:{port} cannot be opened for listening: {error.strerror or error}",
            next_step="choose another --port or --host",
        ) from error
