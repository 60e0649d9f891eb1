"""The broker as an HTTP server of this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from starlette.requests import Request

from contexture_sandbox.context_broker import api, control
from contexture_sandbox.context_broker.broker import Broker, Call, correlator_of
from contexture_sandbox.context_broker.faults import BrokerFaults
from contexture_sandbox.context_broker.linked_data import LinkedDataFace
from contexture_sandbox.context_broker.loading import Loaded, SeedEntity, load
from contexture_sandbox.context_broker.store import Store
from contexture_sandbox.faults import Fault
from contexture_sandbox.http_server import Answer, Application, HttpServer, RecordedRequest, json_answer


class BrokerApplication(Application[Broker, Call]):
    """Serves the NGSI API of a broker, and `/sandbox`."""

    def call(self, request: Request, segments: tuple[str, ...], body: bytes, faults: Sequence[Fault]) -> Call:
        """Decodes a request; the faults that hit it change nothing of it."""
        del faults
        headers = dict(request.headers.items())
        parameters = dict(request.query_params.items())
        return Call(request.method, segments, parameters, headers, body, correlator_of(headers))

    def control(self, call: Call) -> Answer:
        """Returns the response to a request below `/sandbox`."""
        return control.answer(self._state, call)

    def answer(self, call: Call) -> Answer:
        """Returns the response of the NGSI API."""
        return api.answer(self._state, call)

    def failure(self, fault: Fault) -> Answer | None:
        """Returns the error of a `status` fault, in the form of Orion."""
        if fault.kind != "status":
            return None
        body = {"error": "SandboxFault", "description": "this failure was asked for"}
        return json_answer(body, status=fault.status, headers=fault.headers)

    def headers(self, call: Call) -> Mapping[str, str]:
        """Returns the correlator, which Orion sends back."""
        return {"fiware-correlator": call.correlator}

    def delay_seconds(self) -> float:
        """Returns how late every response comes."""
        return self._state.faults.delay_seconds


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
