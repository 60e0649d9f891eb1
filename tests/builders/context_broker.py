"""A broker asked without HTTP: what it answers is decided below the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from contexture_sandbox.context_broker import api
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.http_server import Answer


class Client:
    """Asks a broker as one tenant."""

    def __init__(self, service: str = "city", service_path: str = "/parks") -> None:
        self.broker = Broker()
        self.headers = {"fiware-service": service, "fiware-servicepath": service_path}

    def ask(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None, **given: str
    ) -> Answer:
        content = b"" if body is None else orjson.dumps(body)
        sent = {"content-type": "application/json", "content-length": str(len(content))} if body is not None else {}
        call = Call(
            method, tuple(path.strip("/").split("/")), given, {**self.headers, **sent, **(headers or {})}, content, "c"
        )
        return api.answer(self.broker, call)

    def get(self, path: str = "v2/entities", **given: str) -> Any:
        answer = self.ask("GET", path, **given)
        assert answer.status == 200, answer.body
        return orjson.loads(answer.body)

    def ids(self, **given: str) -> list[str]:
        return [entity["id"] for entity in self.get(**given)]

    def create(self, entity_id: str, type_: str = "Park", **attributes: object) -> None:
        answer = self.ask("POST", "v2/entities", {"id": entity_id, "type": type_, **attributes})
        assert answer.status == 201, answer.body
