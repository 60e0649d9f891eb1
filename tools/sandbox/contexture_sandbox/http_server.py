"""What the test servers have in common: an HTTP server in a thread of this process, whose responses fail on demand."""

from __future__ import annotations

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from urllib.parse import unquote

import orjson
import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.context_broker.times import Clock, http_date
from contexture_sandbox.faults import Fault, Faults

HOST = "127.0.0.1"
START_SECONDS = 10.0
JSON_TYPE = "application/json"
REMEMBERED_REQUESTS = 10_000
_WITHOUT_LENGTH = frozenset({204, 304})
Address = tuple[str, int]


class ConnectionDropped(Exception):  # noqa: N818 - an instruction to the server, never seen by a caller
    """The client is to get no response at all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response: status, body and the headers beyond those of every response."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def json_answer(value: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Builds a JSON response."""
    return Answer(status, orjson.dumps(value), {"content-type": JSON_TYPE, **(headers or {})})


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request, decoded. Header names are lower case."""

    method: str
    segments: tuple[str, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that arrived, without its headers (they may hold a secret)."""

    method: str
    path: str
    parameters: Mapping[str, str]


class ServerState:
    """The state of one test server below HTTP.

    Attributes:
        clock: gives the `Date` of responses.
        faults: what is to go wrong.
        requests: the last requests.
    """

    def __init__(self, clock: Clock, faults: Faults) -> None:
        self.clock = clock
        self.faults = faults
        self.requests: deque[RecordedRequest] = deque(maxlen=REMEMBERED_REQUESTS)

    def record(self, method: str, path: str, parameters: Mapping[str, str]) -> None:
        """Stores that a request arrived."""
        self.requests.append(RecordedRequest(method, path, dict(parameters)))


CallT = TypeVar("CallT", bound=HttpCall)
StateT = TypeVar("StateT", bound=ServerState)


def control(actions: Mapping[tuple[str, str], Callable[[StateT, CallT], object]], state: StateT, call: CallT) -> Answer:
    """Returns the response to a request below `/sandbox`.

    Args:
        actions: by method and path; each returns what becomes the JSON body.
        state: of the server.
        call: the request.
    """
    action = actions.get((call.method, "/".join(call.segments[1:])))
    if action is None:
        known = sorted(f"{method} /sandbox/{path}" for method, path in actions)
        return json_answer({"error": "unknown", "known": known}, status=404)
    try:
        return json_answer(action(state, call))
    except (ValueError, TypeError, KeyError) as error:
        return json_answer({"error": "not understood", "description": str(error)}, status=400)


class Application(ABC, Generic[StateT, CallT]):
    """An ASGI application: decodes a request, applies the faults that hit it, sends the response.

    Args:
        state: of the server.
        close_connection: ends the connection of a client's address.
    """

    def __init__(self, state: StateT, close_connection: Callable[[Address], None]) -> None:
        self._state = state
        self._close_connection = close_connection

    @abstractmethod
    def call(self, request: Request, segments: tuple[str, ...], body: bytes, faults: Sequence[Fault]) -> CallT:
        """Decodes a request."""

    @abstractmethod
    def control(self, call: CallT) -> Answer:
        """Returns the response to a request below `/sandbox`."""

    @abstractmethod
    def answer(self, call: CallT) -> Answer:
        """Returns the response to any other request.

        Raises:
            ConnectionDropped: there is to be no response.
        """

    @abstractmethod
    def failure(self, fault: Fault) -> Answer | None:
        """Returns the response that a fault sends; None where it only disturbs the ordinary one."""

    def headers(self, call: CallT) -> Mapping[str, str]:
        """Returns the headers of every response to this request, besides its date and length."""
        del call
        return {}

    def delay_seconds(self) -> float:
        """Returns how late every response comes."""
        return 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        request = Request(scope, receive)
        body = await request.body()
        segments = _segments(scope)
        if segments[:1] == ("sandbox",):
            call = self.call(request, segments, body, ())
            await self._send(send, call, self.control(call))
            return
        self._state.record(request.method, scope["path"], request.query_params)
        faults = self._state.faults.striking(request.method, scope["path"])
        call = self.call(request, segments, body, faults)
        try:
            answer = await self._disturbed(call, faults)
        except ConnectionDropped:
            await self._hang_up(scope, receive)
            return
        truncated = any(fault.kind == "truncate" for fault in faults)
        await self._send(send, call, answer, whole=not truncated)
        if truncated:
            await self._hang_up(scope, receive)

    async def _hang_up(self, scope: Scope, receive: Receive) -> None:
        self._close_connection(scope["client"])
        # The server has to notice this before the application returns, because it would send a response of its own.
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _disturbed(self, call: CallT, faults: Sequence[Fault]) -> Answer:
        late = self.delay_seconds() + sum(fault.seconds for fault in faults)
        if late:
            await asyncio.sleep(late)
        if any(fault.kind == "drop" for fault in faults):
            raise ConnectionDropped
        for fault in faults:
            if (failure := self.failure(fault)) is not None:
                return failure
        return self.answer(call)

    async def _send(self, send: Send, call: CallT, answer: Answer, *, whole: bool = True) -> None:
        headers = {
            "date": http_date(self._state.clock.now()),
            **self.headers(call),
            **answer.headers,
            "content-length": str(len(answer.body)),
        }
        if answer.status in _WITHOUT_LENGTH:
            del headers["content-length"]
        encoded = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        body = answer.body if whole else answer.body[: len(answer.body) // 2]
        await send({"type": "http.response.body", "body": body, "more_body": not whole})


def _segments(scope: Scope) -> tuple[str, ...]:
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    return tuple(unquote(part) for part in raw_path.decode().strip("/").split("/"))


class Connections:
    """The open connections of a server, so that one can be cut."""

    def __init__(self) -> None:
        self._transports: dict[Address, asyncio.Transport] = {}

    def protocol(self) -> type[H11Protocol]:
        """Returns an HTTP protocol for uvicorn that registers its connections here."""
        transports = self._transports

        class RegisteredProtocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    transports[self.client] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                if self.client is not None:
                    transports.pop(self.client, None)

        return RegisteredProtocol

    def close(self, client: Address) -> None:
        """Ends a connection; what was sent already arrives."""
        transport = self._transports.get((client[0], client[1]))
        if transport is not None:
            transport.close()


class HttpServer:
    """A test server on 127.0.0.1, in a thread of this process; a context manager, or `start` and `stop`.

    Args:
        name: of the server, for messages.
        application: makes the ASGI application with the function that ends a connection.
        port: 0 takes a free one.
    """

    __test__ = False  # pytest takes classes named Test… for tests

    def __init__(
        self, name: str, application: Callable[[Callable[[Address], None]], Application[Any, Any]], port: int
    ) -> None:
        self._name = name
        self._application = application
        self._port = port
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None
        self.url = ""

    def start(self) -> Self:
        """Listens.

        Raises:
            ConfigurationError: the port is taken.
            RetriableError: the server did not start within 10 seconds.
        """
        listener = listen(self._port)
        port = listener.getsockname()[1]
        self._server = self._new_server()
        self._thread = Thread(target=self._server.run, args=([listener],), name=f"{self._name} {port}", daemon=True)
        self._thread.start()
        self.url = f"http://{HOST}:{port}"
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline:
                raise RetriableError(f"the {self._name} did not start", next_step="try again", url=self.url)
            time.sleep(0.005)
        return self

    def _new_server(self) -> uvicorn.Server:
        connections = Connections()
        config = uvicorn.Config(
            self._application(connections.close),
            http=connections.protocol(),
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        return uvicorn.Server(config)

    def stop(self) -> None:
        """Stops listening; what is stored stays as long as the object."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            self._thread.join(START_SECONDS)
        self._server = self._thread = None

    def wait(self) -> None:
        """Serves until interrupted or stopped."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def listen(port: int) -> socket.socket:
    """Opens a socket on 127.0.0.1; port 0 takes a free one.

    Raises:
        ConfigurationError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"port {port} is taken", next_step="choose another with --port, or 0 for any free one", port=port
        ) from error
    return listener
