"""The registry as an ASGI application."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from contexture_sandbox.faults import Fault
from contexture_sandbox.http_server import Answer, Application
from contexture_sandbox.registry import api, control
from contexture_sandbox.registry.refusals import INTERNAL, Refusal
from contexture_sandbox.registry.registry import Call, Registry

PAGE = b"<html><body><h1>Not here</h1></body></html>"


class RegistryApplication(Application[Registry, Call]):
    """Serves a registry with the interface of its face, and `/sandbox`."""

    def call(self, request: Request, segments: tuple[str, ...], body: bytes, faults: Sequence[Fault]) -> Call:
        """Decodes a request; notes which faults take content away from its response."""
        kinds = {fault.kind for fault in faults}
        return Call(
            method=request.method,
            segments=segments,
            parameters=dict(request.query_params.items()),
            headers=dict(request.headers.items()),
            body=body,
            base=str(request.base_url).rstrip("/"),
            empty="empty" in kinds,
            half="half" in kinds,
        )

    def control(self, call: Call) -> Answer:
        """Returns the response to a request below `/sandbox`."""
        return control.answer(self._state, call)

    def answer(self, call: Call) -> Answer:
        """Returns the response of the registry."""
        return api.answer(self._state, call)

    def failure(self, fault: Fault) -> Answer | None:
        """Returns the error of a `status` fault, or the page of a web server without its registry."""
        if fault.kind == "status":
            refused = Refusal(fault.status, INTERNAL, "this failure was asked for").answer()
            return Answer(refused.status, refused.body, {**refused.headers, **fault.headers})
        if fault.kind == "page":
            return Answer(fault.status, PAGE, {"content-type": "text/html", **fault.headers})
        return None
