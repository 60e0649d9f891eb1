"""The ASGI application: decodes a request, lets a fault have its way, sends the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from contexture_sandbox.context_broker.answers import Answer
from contexture_sandbox.context_broker.times import http_date
from contexture_sandbox.registry import api, control
from contexture_sandbox.registry.faults import Fault
from contexture_sandbox.registry.refusals import INTERNAL, Refusal
from contexture_sandbox.registry.registry import Call, ConnectionDropped, Registry

PAGE = b"<html><body><h1>Not here</h1></body></html>"
CloseConnection = Callable[[tuple[str, int]], None]


class Application:
    """A registry as an ASGI application.

    Args:
        registry: what answers.
        close_connection: ends the connection of a client's address at once.
    """

    def __init__(self, registry: Registry, close_connection: CloseConnection) -> None:
        self._registry = registry
        self._close_connection = close_connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        body = await request.body()
        segments = _segments(scope)
        if segments[:1] == ("sandbox",):
            await self._send(send, control.answer(self._registry, _call(request, segments, body)))
            return
        self._registry.record(request.method, scope["path"], request.query_params)
        faults = self._registry.faults.striking(request.method, scope["path"])
        try:
            answer = await self._answer(_call(request, segments, body, faults), faults)
        except ConnectionDropped:
            await self._hang_up(scope, receive)
            return
        truncated = any(fault.kind == "truncate" for fault in faults)
        await self._send(send, answer, whole=not truncated)
        if truncated:
            await self._hang_up(scope, receive)

    async def _hang_up(self, scope: Scope, receive: Receive) -> None:
        self._close_connection(scope["client"])
        # The server must have noticed before it is told that there is no answer, or it makes one of its own.
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _answer(self, call: Call, faults: Sequence[Fault]) -> Answer:
        late = sum(fault.seconds for fault in faults)
        if late:
            await asyncio.sleep(late)
        if any(fault.kind == "drop" for fault in faults):
            raise ConnectionDropped
        for fault in faults:
            if fault.kind == "status":
                refused = Refusal(fault.status, INTERNAL, "this failure was asked for").answer()
                return Answer(refused.status, refused.body, {**refused.headers, **fault.headers})
            if fault.kind == "page":
                return Answer(fault.status, PAGE, {"content-type": "text/html", **fault.headers})
        return api.answer(self._registry, call)

    async def _send(self, send: Send, answer: Answer, *, whole: bool = True) -> None:
        headers = {
            "date": http_date(self._registry.store.clock.now()),
            **answer.headers,
            "content-length": str(len(answer.body)),
        }
        if answer.status == 304:
            del headers["content-length"]
        encoded = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        body = answer.body if whole else answer.body[: len(answer.body) // 2]
        await send({"type": "http.response.body", "body": body, "more_body": not whole})


def _segments(scope: Scope) -> tuple[str, ...]:
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    return tuple(unquote(part) for part in raw_path.decode().strip("/").split("/"))


def _call(request: Request, segments: tuple[str, ...], body: bytes, faults: Sequence[Fault] = ()) -> Call:
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
