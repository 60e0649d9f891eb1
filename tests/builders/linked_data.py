"""An NGSI-LD broker asked without a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from contexture_sandbox.context_broker import api
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.linked_data import Flavour, LinkedDataFace

LINK = '<https://example.org/context.jsonld>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'


@dataclass
class LinkedDataNetwork:
    """A network with one broker on it: `transport()` is what a client of httpx is given.

    Attributes:
        asked: the requests so far.
    """

    flavour: str | Flavour = "orion-ld"
    asked: list[httpx.Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.broker = Broker()
        self.face = LinkedDataFace(self.broker, self.flavour)

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, **given: str) -> Any:
        """The answer to a request that sends the @context."""
        with httpx.Client(transport=self.transport(), base_url="http://broker") as client:
            return client.request(method, path, params=given, json=body, headers={"link": LINK, **(headers or {})})

    def list(self, **given: str) -> httpx.Response:
        answer: httpx.Response = self.ask("GET", "/ngsi-ld/v1/entities", **given)
        return answer

    def ids(self, **given: str) -> list[str]:
        return [entity["id"] for entity in self.list(**given).json()]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        segments = tuple(request.url.path.strip("/").split("/"))
        call = Call(request.method, segments, dict(request.url.params), headers, request.content, "c")
        answer = api.answer(self.broker, call)
        return httpx.Response(answer.status, content=answer.body, headers=answer.headers)


def device(number: int, kind: str | list[str] = "Device", **members: object) -> dict[str, object]:
    """An entity `urn:ngsi-ld:Device:<number>`."""
    value = {"type": "Property", "value": number}
    return {"id": f"urn:ngsi-ld:Device:{number:05}", "type": kind, "level": value, **members}
