"""The registry as an HTTP server of this process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from threading import Thread
from types import TracebackType
from typing import Self

import uvicorn

from contexture.errors import RetriableError
from contexture_sandbox.context_broker.server import HOST, START_SECONDS, Connections, listen
from contexture_sandbox.registry.app import Application
from contexture_sandbox.registry.faults import Faults
from contexture_sandbox.registry.model import Action, Face, Transaction
from contexture_sandbox.registry.registry import PRODUCT_VERSION, RecordedRequest, Registry
from contexture_sandbox.registry.store import Store
from contexture_sandbox.registry.submissions import Submission, delete, submit


class TestRegistry:
    """A structure registry for tests, on 127.0.0.1, in a thread of this process.

    Use as a context manager, or call `start` and `stop`.

        with TestRegistry() as registry:
            registry.submit(message)
            httpx.get(registry.url + "/sdmx/v2/structure/*/*/*/*")

    Args:
        face: `fmr`, or `plain` for an SDMX-REST service without log, history, submissions and conditional requests.
        port: 0 takes a free one.
        version: of the product, as the face of an FMR reports it; below 12 it ignores `asOf`, below 11 it has
            no SDMX-REST 2.
        credentials: passwords by user; root with `password` if none.
        checks_references: refuse what would leave a reference to nothing, as an FMR does.

    Attributes:
        store: structures, transactions, and the `clock` that can be frozen.
        faults: what is to go wrong (`fail`, `page`, `empty`, `half`, `truncate`, `drop`, `delay`).
    """

    __test__ = False  # pytest takes classes named Test… for tests

    def __init__(
        self,
        face: Face = "fmr",
        *,
        port: int = 0,
        version: str = PRODUCT_VERSION,
        credentials: Mapping[str, str] | None = None,
        checks_references: bool = False,
    ) -> None:
        self._port = port
        self._registry = Registry(face, version=version, credentials=credentials, checks_references=checks_references)
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None
        self.url = ""

    @property
    def store(self) -> Store:
        """What the registry holds."""
        return self._registry.store

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self._registry.faults

    @property
    def requests(self) -> list[RecordedRequest]:
        """The last 10,000 requests, oldest first."""
        return list(self._registry.requests)

    def submit(self, *messages: bytes, action: Action = "Replace", user: str = "root") -> Transaction:
        """One transaction; several messages are the same structures in several formats.

        Raises:
            Refusal: it can't be done, see `submissions`.
        """
        return submit(self.store, Submission(messages, action, user), strict=self._registry.checks_references)

    def delete(self, urns: Iterable[str], *, user: str = "root") -> Transaction:
        """One transaction that deletes.

        Raises:
            Refusal: one of them isn't there.
        """
        return delete(self.store, urns, user=user, strict=self._registry.checks_references)

    def restrict(self, urns: Iterable[str]) -> None:
        """Hide these structures from who has no credentials; those that were hidden before are public again."""
        self._registry.restricted = set(urns)

    def start(self) -> Self:
        """Listen.

        Raises:
            ConfigurationError: the port is taken.
            RetriableError: the server did not come up in 10 seconds.
        """
        listener = listen(self._port)
        port = listener.getsockname()[1]
        self._server = _server(self._registry)
        self._thread = Thread(target=self._server.run, args=([listener],), name=f"registry-{port}", daemon=True)
        self._thread.start()
        self.url = f"http://{HOST}:{port}"
        self._await_start()
        return self

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._server is not None and not self._server.started:
            if time.monotonic() > deadline:
                raise RetriableError("the test registry did not start", next_step="try again", url=self.url)
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop listening; what is stored stays until the object goes."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            self._thread.join(START_SECONDS)
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


def _server(registry: Registry) -> uvicorn.Server:
    connections = Connections()
    config = uvicorn.Config(
        Application(registry, connections.close),
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
