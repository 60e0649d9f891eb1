"""The reception's own server against clients that say nothing, little by little, or far too much."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from contexture.reception import server as serving
from contexture.reception.patience import PatientConnection
from contexture.reception.server import ReceptionServer


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())} bytes")


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(PatientConnection, "HEAD_SECONDS", 0.4)
    with running() as address:
        yield address


@contextmanager
def running() -> Iterator[tuple[str, int]]:
    server = ReceptionServer(Starlette(routes=[Route("/", answer, methods=["POST"])]), "127.0.0.1", 0)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    url = httpx.URL(server.url)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            httpx.get(url)
            break
        except httpx.TransportError:
            time.sleep(0.01)
    yield str(url.host), int(url.port or 0)
    server.stop()
    thread.join(timeout=15)


def received(connection: socket.socket) -> bytes:
    connection.settimeout(10)
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


def test_a_connection_that_says_nothing_is_closed(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        assert received(connection) == b""


def test_headers_that_drip_are_given_up_however_often_something_comes(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\n")

        assert dripped(connection, b"A: b\r\n", 200, 0.05) < 200


def test_headers_without_an_end_are_refused_while_they_are_small(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nA: ")

        assert dripped(connection, b"b" * 65536, 1_000) < 1_000


def test_a_slow_body_behind_prompt_headers_is_the_applications_affair(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab")
        time.sleep(0.8)
        connection.sendall(b"cd")

        assert received(connection).endswith(b"4 bytes")


def test_a_connection_may_be_used_again(address: tuple[str, int]) -> None:
    with httpx.Client() as client:
        answers = [client.post(f"http://{address[0]}:{address[1]}/", content=b"abc").text for _ in range(3)]

    assert answers == ["3 bytes"] * 3


def test_more_at_once_than_the_limit_are_turned_away_until_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAXIMUM_REQUESTS", 3)
    # The one that is turned away counts too.
    begun = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab"
    with running() as address, ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(address)) for _ in range(2)]
        for connection in waiting:
            connection.sendall(begun)
        time.sleep(0.2)
        assert httpx.post(f"http://{address[0]}:{address[1]}/", content=b"abc").status_code == 503

        for connection in waiting:
            connection.sendall(b"cd")
        assert all(received(connection).endswith(b"4 bytes") for connection in waiting)
        assert httpx.post(f"http://{address[0]}:{address[1]}/", content=b"abc").status_code == 200
