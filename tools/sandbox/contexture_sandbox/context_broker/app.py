"""The broker as an ASGI application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request

from contexture_sandbox.context_broker import api, control
from contexture_sandbox.context_broker.broker import Broker, Call, correlator_of
from contexture_sandbox.faults import Fault
from contexture_sandbox.http_server import Answer, Application, json_answer


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
