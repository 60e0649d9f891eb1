"""The ASGI application: decodes a request, lets a fault have its way, sends the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from contexture_sandbox.context_broker import api, control
from contexture_sandbox.context_broker.answers import Answer, json_answer
from contexture_sandbox.context_broker.broker import Broker, Call, ConnectionDropped, correlator_of
from contexture_sandbox.context_broker.faults import Fault
from contexture_sandbox.context_broker.times import http_date

CloseConnection = Callable[[tuple[str, int]], None]


class Application:
    """A broker as an ASGI application.

    Args:
        broker: what answers.
        close_connection: ends the connection of a client's address at once.
    """

    def __init__(self, broker: Broker, close_connection: CloseConnection) -> None:
        self._broker = broker
        self._close_connection = close_connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        body = await request.body()
        call = _call(scope, request, body)
        if call.segments[:1] == ("sandbox",):
            await _send(send, call, control.answer(self._broker, call), self._date())
            return
        self._broker.record(call.method, scope["path"], call.parameters)
        faults = self._broker.faults.striking(call.method, scope["path"])
        try:
            answer = await self._answer(call, faults)
        except ConnectionDropped:
            await self._hang_up(scope, receive)
            return
        truncated = any(fault.kind == "truncate" for fault in faults)
        await _send(send, call, answer, self._date(), whole=not truncated)
        if truncated:
            await self._hang_up(scope, receive)

    async def _hang_up(self, scope: Scope, receive: Receive) -> None:
        self._close_connection(scope["client"])
        # The server must have noticed before it is told that there is no answer, or it makes one of its own.
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _answer(self, call: Call, faults: list[Fault]) -> Answer:
        late = self._broker.faults.delay_seconds + sum(fault.seconds for fault in faults)
        if late:
            await asyncio.sleep(late)
        if any(fault.kind == "drop" for fault in faults):
            raise ConnectionDropped
        for fault in faults:
            if fault.kind == "status":
                words = {"error": "SandboxFault", "description": "this failure was asked for"}
                return json_answer(words, status=fault.status, headers=fault.headers)
        return api.answer(self._broker, call)

    def _date(self) -> str:
        return http_date(self._broker.store.clock.now())


def _call(scope: Scope, request: Request, body: bytes) -> Call:
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    segments = tuple(unquote(part) for part in raw_path.decode().strip("/").split("/"))
    headers = dict(request.headers.items())
    return Call(request.method, segments, _parameters(request), headers, body, correlator_of(headers))


def _parameters(request: Request) -> Mapping[str, str]:
    return dict(request.query_params.items())


async def _send(send: Send, call: Call, answer: Answer, date: str, *, whole: bool = True) -> None:
    headers = {
        "date": date,
        "fiware-correlator": call.correlator,
        **answer.headers,
        "content-length": str(len(answer.body)),
    }
    if answer.status == 204:
        del headers["content-length"]
    encoded = [(name.encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    body = answer.body if whole else answer.body[: len(answer.body) // 2]
    await send({"type": "http.response.body", "body": body, "more_body": not whole})
