"""A hostile network in front of one Kafka broker: a TCP proxy that knows where Kafka's requests begin and end.

The broker advertises the proxy's address (`behind_proxy`), so every client goes through it, each connection with one of
its own to the broker. A function of the caller sees each request before it is passed on and chooses its fate; another
one sees each answer. So a fault is put at a moment of the protocol, not at a moment of the clock:

    def fate(request):
        return Hold("old") if request.api == "EndTxn" and request.number == 1 else None

    def answered(answer):
        if answer.request.api == "Produce" and answer.request.number == 3:
            proxy.release("old")

What follows a held request on the same connection waits behind it, as it does in a network; a client that is cut off
connects again and overtakes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, cast

from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.ports import free_ports

APIS: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    10: "FindCoordinator",
    18: "ApiVersions",
    19: "CreateTopics",
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    26: "EndTxn",
}
"""Names of the requests by Kafka's api key; any other is named by its number."""

ERRORS: Final = {
    0: "NONE",
    16: "NOT_COORDINATOR",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    46: "DUPLICATE_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING",
    51: "CONCURRENT_TRANSACTIONS",
    90: "PRODUCER_FENCED",
    120: "TRANSACTION_ABORTABLE",
}

_BUFFERED_BYTES: Final = 2**20
# How long the broker's side of a connection is kept after the client's is gone: what the broker got, it carries out.
_LINGER_SECONDS: Final = 30.0
# The first version of each answer whose header and body are in the compact form.
_COMPACT_FROM: Final = {"InitProducerId": 2, "EndTxn": 3, "AddPartitionsToTxn": 3, "Produce": 9}


@dataclass(frozen=True, slots=True)
class Hold:
    """The request stays in the proxy until `KafkaProxy.release(name)`; with `cut` the client is cut off at once."""

    name: str
    cut: bool = True


@dataclass(frozen=True, slots=True)
class Delay:
    """The request is passed on after so many seconds."""

    seconds: float
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The broker gets the request twice, the client hears of the first answer.

    Attributes:
        name: the second copy stays in the proxy until `KafkaProxy.release(name)`; without one it follows at once.
    """

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The request is lost, and the client cut off."""


@dataclass(frozen=True, slots=True)
class DropAnswer:
    """The broker gets the request, the client never hears; with `cut` it is cut off instead of the answer."""

    cut: bool = True


@dataclass(frozen=True, slots=True)
class Stall:
    """From the request on nothing passes for so many seconds, on no connection and in neither direction.

    Nothing is lost, as TCP loses nothing: what both sides sent meanwhile arrives then, also on connections that the
    client has given up.
    """

    seconds: float


Fate = Hold | Delay | Duplicate | Cut | DropAnswer | Stall
"""What befalls a request; None in its place passes it on."""


@dataclass(slots=True)
class Request:
    """A request of a client.

    Attributes:
        connection: number of the client's connection, from 1.
        client: its `client.id`.
        api: name of the request.
        version: of the request.
        number: how many of this api there were with it since the start, or since `reset`; from 1.
        raw: with the length before it.
        is_stale: it was held or delayed, or is the late copy of another.
    """

    connection: int
    client: str
    api: str
    version: int
    number: int
    raw: bytes = field(repr=False)
    is_stale: bool = False

    @property
    def commits(self) -> bool | None:
        """Of EndTxn in versions 0 to 2, which librdkafka 2.16 speaks: whether it commits; None of any other."""
        if self.api != "EndTxn" or self.version >= _COMPACT_FROM["EndTxn"]:
            return None
        # Length, api, version, correlation; client's name; transactional id, producer id, epoch.
        at = 14 + max(0, struct.unpack_from(">h", self.raw, 12)[0])
        at += 2 + struct.unpack_from(">h", self.raw, at)[0]
        return bool(struct.unpack_from(">qh?", self.raw, at)[2])


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the broker.

    Attributes:
        request: what it answers.
        error: its first error by Kafka's name, or number where `ERRORS` has no name; None where that is not known.
    """

    request: Request
    error: str | None


@dataclass(slots=True)
class _Connection:
    number: int
    client: asyncio.StreamWriter
    broker: asyncio.StreamWriter
    waiting: defaultdict[int, deque[tuple[Request, DropAnswer | None]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self) -> None:
        self.client.transport.abort()


class KafkaProxy:
    """The proxy, in a thread of its own; a context manager.

    Args:
        port: where clients connect, on 127.0.0.1.
        broker_port: where the broker listens.

    Attributes:
        fate: chooses what befalls a request. It and `answered` run in the proxy's thread and must not block.
        answered: sees each answer that the broker gave, also one that the client never hears.
        answers: all answers to requests of transactions so far (`EndTxn`, `InitProducerId`, `AddPartitionsToTxn`).
        failure: what `fate` or `answered` raised last; a test looks at it in the end.
    """

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self._broker_port = broker_port
        self.fate: Callable[[Request], Fate | None] = lambda request: None
        self.answered: Callable[[Answer], None] = lambda answer: None
        self.answers: list[Answer] = []
        self.failure: Exception | None = None
        self._numbers = itertools.count(1)
        self._counts: Counter[str] = Counter()
        self._held: dict[str, asyncio.Event] = {}
        self._connections: dict[int, _Connection] = {}
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._copies: set[asyncio.Task[None]] = set()
        self._is_open = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kafka-proxy", daemon=True)

    def __enter__(self) -> KafkaProxy:
        self._thread.start()
        if not self._is_open.wait(10):
            raise OSError(f"the proxy could not listen on port {self.port}")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def reset(self) -> None:
        """Lets everything through, what is held too, and counts requests and answers from the beginning."""
        self.fate, self.answered = (lambda request: None), (lambda answer: None)

        def forget() -> None:
            for event in self._held.values():
                event.set()
            self._held.clear()
            self._counts.clear()
            self.answers.clear()

        self._call(forget)

    def release(self, name: str) -> None:
        """Passes on what is held, or will be, by that name; from any thread."""
        self._loop.call_soon_threadsafe(lambda: self._held.setdefault(name, asyncio.Event()).set())

    def cut_all(self) -> None:
        """Cuts all clients off; the broker carries out what it has got."""

        def cut() -> None:
            for each in self._connections.values():
                each.cut()

        self._call(cut)

    def await_answer(self, condition: Callable[[Answer], bool], seconds: float = 30.0) -> bool:
        """Waits for an answer among `answers`; False when it did not come."""
        with self._changed:
            return self._changed.wait_for(lambda: any(map(condition, self.answers)), seconds)

    def _call(self, call: Callable[[], object]) -> None:
        """Runs something in the proxy's thread, and waits for it."""
        done = threading.Event()

        def run() -> None:
            call()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listening = asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=_BUFFERED_BYTES)
        server = self._loop.run_until_complete(listening)
        self._is_open.set()
        self._loop.run_forever()
        server.close()
        under_way = asyncio.all_tasks(self._loop)
        for task in under_way:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*under_way, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(
                "127.0.0.1", self._broker_port, limit=_BUFFERED_BYTES
            )
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(next(self._numbers), writer, to_broker)
        connection.idle.set()
        self._connections[connection.number] = connection
        answers = asyncio.create_task(self._pass_answers(connection, from_broker))
        try:
            while True:
                await self._pass_request(connection, await _frame(reader))
        except (asyncio.IncompleteReadError, OSError):
            pass
        except Exception as problem:  # a mistake in the caller's functions
            self.failure = problem
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connection.idle.wait(), _LINGER_SECONDS)
        answers.cancel()
        del self._connections[connection.number]
        connection.cut()
        to_broker.transport.abort()

    async def _pass_request(self, connection: _Connection, raw: bytes) -> None:
        request, correlation = self._read(connection, raw)
        fate = self.fate(request)
        if isinstance(fate, Stall):
            self._passing.clear()
            self._loop.call_later(fate.seconds, self._passing.set)
        await self._passing.wait()
        if isinstance(fate, Cut):
            connection.cut()
            return
        if isinstance(fate, Hold | Delay):
            request.is_stale = True
            if fate.cut:
                connection.cut()
            await self._wait(fate)
        drop = fate if isinstance(fate, DropAnswer) else None
        self._send(connection, raw, correlation, request, drop)
        if isinstance(fate, Duplicate):
            if fate.name is None:
                self._send(connection, raw, correlation, request, DropAnswer(cut=False))
            else:
                self._keep(asyncio.create_task(self._send_copy(raw, correlation, request, fate.name)))
        await connection.broker.drain()

    def _send(
        self, connection: _Connection, raw: bytes, correlation: int, request: Request, drop: DropAnswer | None
    ) -> None:
        connection.waiting[correlation].append((request, drop))
        connection.idle.clear()
        connection.broker.write(raw)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._copies.add(task)
        task.add_done_callback(self._copies.discard)

    async def _send_copy(self, raw: bytes, correlation: int, request: Request, name: str) -> None:
        """Sends a copy when it is released, on a connection of its own: the client's may be gone by then."""
        await self._held.setdefault(name, asyncio.Event()).wait()
        try:
            opened = asyncio.open_connection("127.0.0.1", self._broker_port, limit=_BUFFERED_BYTES)
            from_broker, to_broker = await opened
            to_broker.write(raw)
            answer = await asyncio.wait_for(_frame(from_broker), _LINGER_SECONDS)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            return
        to_broker.transport.abort()
        self._note(Answer(replace(request, is_stale=True), _error(request, answer)))

    async def _wait(self, fate: Hold | Delay) -> None:
        if isinstance(fate, Delay):
            await asyncio.sleep(fate.seconds)
        else:
            await self._held.setdefault(fate.name, asyncio.Event()).wait()

    def _read(self, connection: _Connection, raw: bytes) -> tuple[Request, int]:
        key, version, correlation, length = struct.unpack_from(">hhih", raw, 4)
        api = APIS.get(key, str(key))
        self._counts[api] += 1
        client = raw[14 : 14 + max(0, length)].decode(errors="replace")
        return Request(connection.number, client, api, version, self._counts[api], raw), correlation

    async def _pass_answers(self, connection: _Connection, from_broker: asyncio.StreamReader) -> None:
        try:
            while True:
                raw = await _frame(from_broker)
                await self._passing.wait()
                correlation = struct.unpack_from(">i", raw, 4)[0]
                request, drop = connection.waiting[correlation].popleft()
                if not connection.waiting[correlation]:
                    del connection.waiting[correlation]
                self._note(Answer(request, _error(request, raw)))
                if drop is None and not connection.client.transport.is_closing():
                    connection.client.write(raw)
                    await connection.client.drain()
                elif drop is not None and drop.cut:
                    connection.cut()
                if not connection.waiting:
                    connection.idle.set()
        except (asyncio.IncompleteReadError, OSError):
            connection.cut()
            connection.idle.set()
        except Exception as problem:  # a mistake in the caller's functions
            self.failure = problem
            connection.cut()

    def _note(self, answer: Answer) -> None:
        if answer.request.api in {"EndTxn", "InitProducerId", "AddPartitionsToTxn"}:
            with self._changed:
                self.answers.append(answer)
                self._changed.notify_all()
        self.answered(answer)


@contextlib.contextmanager
def behind_proxy(**broker_config: str) -> Iterator[tuple[KafkaProxy, str, str]]:
    """Yields a broker whose clients all go through a proxy.

    Gives the proxy, the address that leads through it, and one that leads past it (for those that only look).
    """
    port, broker_port = free_ports(2)
    kafka = EmbeddedKafka(ports=(broker_port,), broker_config=broker_config)
    node = kafka._nodes[0]
    inside = node.ports.internal
    # The address that a broker gives its clients holds its own second port, which is chosen with the broker.
    options = cast("dict[str, str]", node.options.broker_config)
    options["advertised.listeners"] = f"CLIENT://127.0.0.1:{port},INTERNAL://127.0.0.1:{inside}"
    with KafkaProxy(port, broker_port) as proxy, kafka:
        yield proxy, f"127.0.0.1:{port}", f"127.0.0.1:{inside}"


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])


def _error(request: Request, raw: bytes) -> str | None:
    """Returns the first error of an answer."""
    is_compact = request.version >= _COMPACT_FROM.get(request.api, 0)
    try:
        match request.api:
            # Length, correlation (and tags), time to wait.
            case "EndTxn" | "InitProducerId":
                at = 13 if is_compact else 12
            # Time to wait, topics, name, partitions, number.
            case "AddPartitionsToTxn" if not is_compact:
                at = 18 + struct.unpack_from(">h", raw, 16)[0] + 8
            # Topics, name, partitions, number.
            case "Produce" if is_compact:
                at = 10 + raw[10] + 1 + 4
            case "Produce":
                at = 14 + struct.unpack_from(">h", raw, 12)[0] + 8
            case _:
                return None
        code = struct.unpack_from(">h", raw, at)[0]
    except (struct.error, IndexError):
        return None
    return ERRORS.get(code, str(code))
