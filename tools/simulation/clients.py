"""The simulated clients in the places of confluent-kafka's, and virtual time in the place of the machine's.

Nothing of Contexture is changed for it: whatever it makes a client with, and whichever clock it looks at, is exchanged
while a run lasts, so that the whole of its own code runs, from the sending of an outbox down to the client's options.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import confluent_kafka
import confluent_kafka.admin

from tools.simulation.admin import ClusterMetadata, SimulatedAdmin, metadata
from tools.simulation.brokers import Brokers
from tools.simulation.consumer import SimulatedConsumer
from tools.simulation.events import Events, Process, wall_seconds
from tools.simulation.network import Network, Weather
from tools.simulation.producer import SimulatedProducer

_REAL: dict[str, Callable[..., Any]] = {"monotonic": time.monotonic, "sleep": time.sleep}


class World:
    """All that a run has: time, network and brokers.

    Args:
        seed: of everything that is drawn.
        weather: what befalls requests.
        traced: keep what happens for people.
        batch_records: the most records that a client puts into a request.
        timeout_check_seconds: how often the coordinator looks for transactions that are open for too long.

    Attributes:
        produce_seconds: how long a call of `produce` takes, about.
        drops_producers: a process that makes a producer has dropped its last one of that transactional id.
    """

    def __init__(
        self,
        seed: int,
        weather: Weather | None = None,
        *,
        traced: bool = False,
        batch_records: int = 3,
        timeout_check_seconds: float = 1.0,
    ) -> None:
        self.events = Events(seed, traced=traced)
        self.network = Network(self.events, weather or Weather())
        self.brokers = Brokers(self.events, self.network, timeout_check_seconds)
        self.batch_records = batch_records
        self.produce_seconds = 0.002
        self.drops_producers = False
        self.broker_config = {"socket.request.max.bytes": "104857600"}
        self._producers: dict[tuple[int, str], SimulatedProducer] = {}

    def process(self, name: str, body: Callable[[], None]) -> Process:
        """Returns a process of the run, not started."""
        return Process(self.events, name, body)

    def metadata(self, only: str | None) -> ClusterMetadata:
        """Returns what brokers say of topics."""
        return metadata(self, only)

    def places(self, topic: str) -> list[tuple[str, int]]:
        """Returns the partitions of a topic."""
        found = self.brokers.topics.get(topic)
        return [] if found is None else [each.place for each in found.partitions]

    def replace_producer(self, process: Process, name: str, producer: SimulatedProducer) -> None:
        """A sender has one producer of a transactional id at a time: it dropped the one before."""
        before = self._producers.get((id(process), name))
        if before is not None and self.drops_producers:
            before.destroy()
        self._producers[id(process), name] = producer


_world: World | None = None


def _current() -> World:
    assert _world is not None, "a simulated client outside of a run"
    return _world


def _producer(options: dict[str, Any], **more: Any) -> SimulatedProducer:
    return SimulatedProducer(_current(), {**options, **more})


def _consumer(options: dict[str, Any], **more: Any) -> SimulatedConsumer:
    return SimulatedConsumer(_current(), {**options, **more})


def _admin(options: dict[str, Any], **more: Any) -> SimulatedAdmin:
    del options, more
    return SimulatedAdmin(_current())


def clock() -> float:
    """Seconds of the run under way; the machine's outside of one."""
    return float(_REAL["monotonic"]()) if _world is None else _world.events.clock()


def sleep(seconds: float) -> None:
    """Sleeps in the run under way."""
    if _world is None:
        _REAL["sleep"](seconds)
    else:
        _world.events.sleep(seconds)


def wall_clock() -> float:
    """Returns the time of day of the run under way, in seconds since 1970."""
    return time.time() if _world is None else wall_seconds(_world.events.clock())


_TIME = SimpleNamespace(
    monotonic=clock, sleep=sleep, time=wall_clock, time_ns=time.time_ns, perf_counter=time.perf_counter
)


@contextmanager
def simulated(packages: tuple[str, ...]) -> Iterator[Callable[[World], None]]:
    """Exchanges clients and clocks of these packages until the end of the block.

    Gives what chooses the world that clients are of from now on.
    """
    global _world
    before = (confluent_kafka.Producer, confluent_kafka.Consumer, confluent_kafka.admin.AdminClient)
    confluent_kafka.Producer, confluent_kafka.Consumer = _producer, _consumer  # type: ignore[assignment,misc]
    confluent_kafka.admin.AdminClient = _admin  # type: ignore[assignment,misc]
    undo: list[Callable[[], None]] = []
    for name, module in list(sys.modules.items()):
        if module is not None and any(name == each or name.startswith(each + ".") for each in packages):
            _exchange_clocks(module, undo)

    def choose(world: World) -> None:
        global _world
        _world = world

    try:
        yield choose
    finally:
        _world = None
        confluent_kafka.Producer, confluent_kafka.Consumer = before[:2]  # type: ignore[misc]
        confluent_kafka.admin.AdminClient = before[2]  # type: ignore[misc]
        for each in undo:
            each()


def _exchange_clocks(module: ModuleType, undo: list[Callable[[], None]]) -> None:
    if getattr(module, "time", None) is time:
        module.time = _TIME  # type: ignore[attr-defined]
        undo.append(lambda: setattr(module, "time", time))
    for found in list(vars(module).values()):
        if getattr(found, "__module__", None) != module.__name__:
            continue
        for function in [found, *(vars(found).values() if isinstance(found, type) else ())]:
            _exchange_defaults(function, undo)


def _exchange_defaults(function: Any, undo: list[Callable[[], None]]) -> None:
    exchanged = {_REAL["monotonic"]: clock, _REAL["sleep"]: sleep}
    keywords, positional = getattr(function, "__kwdefaults__", None), getattr(function, "__defaults__", None)
    if keywords and any(_is_clock(each) for each in keywords.values()):
        function.__kwdefaults__ = {
            name: exchanged[each] if _is_clock(each) else each for name, each in keywords.items()
        }
        undo.append(lambda: setattr(function, "__kwdefaults__", keywords))
    if positional and any(_is_clock(each) for each in positional):
        function.__defaults__ = tuple(exchanged[each] if _is_clock(each) else each for each in positional)
        undo.append(lambda: setattr(function, "__defaults__", positional))


def _is_clock(value: object) -> bool:
    return value is _REAL["monotonic"] or value is _REAL["sleep"]
