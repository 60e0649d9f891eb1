"""The broker as an HTTP server of this process."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from contexture_sandbox.context_broker.app import BrokerApplication
from contexture_sandbox.context_broker.broker import Broker
from contexture_sandbox.context_broker.faults import BrokerFaults
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from contexture_sandbox.context_broker.loading import Loaded, SeedEntity, load
from contexture_sandbox.context_broker.store import Store
from contexture_sandbox.http_server import HttpServer, RecordedRequest


class TestBroker(HttpServer):
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

    def __init__(self, port: int = 0) -> None:
        self._broker = Broker()
        super().__init__("test broker", partial(BrokerApplication, self._broker), port)

    @property
    def store(self) -> Store:
        """What the broker holds."""
        return self._broker.store

    @property
    def faults(self) -> BrokerFaults:
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

    def stop(self) -> None:
        """Stops listening, and sending notifications; what is stored stays as long as the object."""
        super().stop()
        self._broker.notifier.stop()
