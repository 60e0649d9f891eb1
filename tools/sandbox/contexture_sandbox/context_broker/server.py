"""The broker as an HTTP server of this process."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from threading import Thread
from types import TracebackType
from typing import Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.context_broker.app import Application
from contexture_sandbox.context_broker.broker import Broker, RecordedRequest
from contexture_sandbox.context_broker.faults import Faults
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from contexture_sandbox.context_broker.loading import Loaded, SeedEntity, load
from contexture_sandbox.context_broker.store import Store

HOST = "127.0.0.1"
START_SECONDS = 10.0
Address = tuple[str, int]


class Connections:
    """The open connections of a server, so that one can be cut."""

    def __init__(self) -> None:
        self._transports: dict[Address, asyncio.Transport] = {}

    def protocol(self) -> type[H11Protocol]:
        """An HTTP protocol for uvicorn that registers its connections here."""
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
        """End a connection at once; what was sent already arrives."""
        transport = self._transports.get((client[0], client[1]))
        if transport is not None:
            transport.close()


class TestBroker:
    """A context broker for tests, on 127.0.0.1, in a thread of this process.

    Use as a context manager, or call `start` and `stop`.

        with TestBroker() as broker:
            broker.load(seed_entities(1000))
            httpx.get(broker.url + "/v2/entities", headers={"Fiware-Service": "vehicles"})

    Args:
        port: 0 takes a free one.

    Attributes:
        store: entities by tenant, and the `clock` that can be frozen.
        faults: what is to go wrong (`database_gone`, `fail`, `drop`, `truncate`, `delay`, `after_page`).
    """

    __test__ = False  # pytest takes classes named Test… for tests

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._broker = Broker()
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None
        self.url = ""

    @property
    def store(self) -> Store:
        """What the broker holds."""
        return self._broker.store

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self._broker.faults

    @property
    def requests(self) -> list[RecordedRequest]:
        """The last 10,000 requests to the NGSI API, oldest first."""
        return list(self._broker.requests)

    def load(self, entities: Iterable[SeedEntity]) -> Loaded:
        """Store entities without any check, see `loading`."""
        return load(self.store, entities)

    def speak_linked_data(self, flavour: str) -> LinkedDataFace:
        """Answer NGSI-LD as a broker does: orion-ld, orion-ld-1.4 (which finds nothing by time), scorpio, stellio."""
        return LinkedDataFace(self._broker, flavour)

    def settle(self) -> None:
        """Wait until every notification has been tried."""
        self._broker.notifier.settle()

    def start(self) -> Self:
        """Listen.

        Raises:
            ConfigurationError: the port is taken.
            RetriableError: the server did not come up in 10 seconds.
        """
        listener = listen(self._port)
        port = listener.getsockname()[1]
        self._server = _server(self._broker)
        self._thread = Thread(target=self._server.run, args=([listener],), name=f"context-broker-{port}", daemon=True)
        self._thread.start()
        self.url = f"http://{HOST}:{port}"
        self._await_start()
        return self

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._server is not None and not self._server.started:
            if time.monotonic() > deadline:
                raise RetriableError("the test broker did not start", next_step="try again", url=self.url)
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop listening; what is stored stays until the object goes."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            self._thread.join(START_SECONDS)
        self._broker.notifier.stop()
        self._server = self._thread = None

    def wait(self) -> None:
        """Serve until interrupted or stopped."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1; port 0 takes a free one.

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


def _server(broker: Broker) -> uvicorn.Server:
    connections = Connections()
    config = uvicorn.Config(
        Application(broker, connections.close),
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
