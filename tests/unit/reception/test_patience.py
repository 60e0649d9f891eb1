"""The reception's own server against clients that say nothing, little by little, or far too much."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Semaphore, Thread

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from contexture.reception import application as serving
from contexture.reception.application import ReceptionServer, TimeLimitedConnection


class Application:
    """Says how many bytes it was sent; counts the requests whose bodies it waited for."""

    def __init__(self) -> None:
        self.begun = Semaphore(0)
        self.starlette = Starlette(routes=[Route("/", self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> PlainTextResponse:
        self.begun.release()
        return PlainTextResponse(f"{len(await request.body())} bytes")


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def address(application: Application) -> Iterator[tuple[str, int]]:
    with running(application) as address:
        yield address


@pytest.fixture
def impatient(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """The address, where headers have to come within a moment: for clients that are to miss it."""
    monkeypatch.setattr(TimeLimitedConnection, "HEAD_SECONDS", 0.4)
    return address


@contextmanager
def running(application: Application) -> Iterator[tuple[str, int]]:
    server = ReceptionServer(application.starlette, "127.0.0.1", 0)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    url = httpx.URL(server.url)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(url)
            break
        except httpx.TransportError:
            time.sleep(0.01)
    yield str(url.host), int(url.port or 0)
    server.stop()
    thread.join(timeout=60)


def received(connection: socket.socket) -> bytes:
    connection.settimeout(60)
    try:
        return b"".join(iter(lambda: connection.recv(65536), b""))
    except ConnectionResetError:
        return b""


def dripped(connection: socket.socket, piece: bytes, times: int, pause_seconds: float = 0.0) -> int:
    """How many pieces were taken before the connection was closed."""
    for number in range(times):
        try:
            connection.sendall(piece)
        except OSError:
            return number
        time.sleep(pause_seconds)
    return times


def test_a_connection_that_says_nothing_is_closed(impatient: tuple[str, int]) -> None:
    with socket.create_connection(impatient) as connection:
        assert received(connection) == b""


def test_headers_that_drip_are_given_up_however_often_something_comes(impatient: tuple[str, int]) -> None:
    with socket.create_connection(impatient) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\n")

        assert dripped(connection, b"A: b\r\n", 1_200, 0.05) < 1_200


def test_headers_without_an_end_are_refused_while_they_are_small(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nA: ")

        assert dripped(connection, b"b" * 65536, 1_000) < 1_000


@pytest.mark.slow
def test_a_slow_body_behind_prompt_headers_is_the_applications_affair(
    application: Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimeLimitedConnection, "HEAD_SECONDS", 2.0)
    with socket.create_connection(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab")
        assert application.begun.acquire(timeout=60)
        time.sleep(2.2)
        connection.sendall(b"cd")

        assert received(connection).endswith(b"4 bytes")


def test_a_connection_may_be_used_again(address: tuple[str, int]) -> None:
    with httpx.Client() as client:
        answers = [client.post(f"http://{address[0]}:{address[1]}/", content=b"abc").text for _ in range(3)]

    assert answers == ["3 bytes"] * 3


def test_more_at_once_than_the_limit_are_turned_away_until_others_are_answered(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MAXIMUM_REQUESTS", 3)
    # The one that is turned away counts too.
    begun = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab"
    with running(application) as address, ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(address)) for _ in range(2)]
        for connection in waiting:
            connection.sendall(begun)
        assert all(application.begun.acquire(timeout=60) for _ in waiting)
        assert httpx.post(f"http://{address[0]}:{address[1]}/", content=b"abc").status_code == 503

        for connection in waiting:
            connection.sendall(b"cd")
        assert all(received(connection).endswith(b"4 bytes") for connection in waiting)
        assert httpx.post(f"http://{address[0]}:{address[1]}/", content=b"abc").status_code == 200
