"""The endpoint of notifications as a whole: whatever comes in by HTTP, an answer of its own goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from concurrent.futures import Future
from typing import Any

from contexture.reception import Credentials, NotificationTarget, reception
from tools.fuzz import target as fuzzed
from tools.fuzz.target import request
from tools.fuzz.targets.broker import ENTITY, LINKED_ENTITY

_PATH = "/contexture/notify/cars"
_STATUSES = frozenset({200, 400, 401, 404, 405, 408, 413, 415, 503})
_MAXIMUM_BYTES = 128 << 10


class _Inbox:
    """Keeps everything at once, in nothing."""

    def submit(self, headers: Mapping[str, str], body: bytes) -> Future[None]:
        kept: Future[None] = Future()
        kept.set_result(None)
        return kept


def _target(api: Any) -> NotificationTarget:
    access = Credentials.of(tokens=["t0ken"], users=[("broker", "pass:word")])
    return NotificationTarget(
        "vehicles", ("/4wheels", "/a/#"), access, _Inbox(), _MAXIMUM_BYTES, types=("car",), api=api
    )


_APPLICATION = reception({"cars": _target(None), "linked": _target("ngsi-ld")})


def _answered(data: bytes) -> object:
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.partition(b" ")
    # A server hands over names in lower case, no line ends, and headers that stand twice as they came.
    headers = [
        (name.strip().lower(), value.strip()) for name, colon, value in (x.partition(b":") for x in lines) if colon
    ]
    scope = {
        **{"type": "http", "http_version": "1.1", "scheme": "http", "query_string": b"", "root_path": ""},
        **{"method": method.decode("latin-1"), "path": path.decode("utf-8", "replace"), "raw_path": path},
        **{"headers": headers, "client": ("192.0.2.1", 5000), "server": ("192.0.2.2", 80)},
    }
    status = asyncio.run(_asked(scope, body))
    if status not in _STATUSES:
        raise AssertionError(f"the endpoint answers {status}")
    return status


async def _asked(scope: MutableMapping[str, Any], body: bytes) -> int:
    half = len(body) // 2
    pieces = [body[:half], body[half:]]
    statuses = []

    async def receive() -> MutableMapping[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await _APPLICATION(scope, receive, send)
    (status,) = statuses
    return int(status)


def _inputs() -> Mapping[str, bytes]:
    known = {
        "Authorization": "Bearer t0ken",
        "Content-Type": "application/json",
        "Fiware-Service": "vehicles",
        "Fiware-ServicePath": "/4wheels",
    }
    linked = {**known, "Content-Type": "application/ld+json", "NGSILD-Tenant": "vehicles"}
    notified = b'{"id":"urn:n:1","type":"Notification","notifiedAt":"2026-01-01T00:00:00Z","data":['
    return {
        "taken": _post(_PATH, known, b'{"subscriptionId":"5","data":[' + ENTITY + b"]}"),
        "linked": _post("/contexture/notify/linked", linked, notified + LINKED_ENTITY + b"]}"),
        "user": _post(_PATH, {**known, "Authorization": "Basic YnJva2VyOnBhc3M6d29yZA=="}, b"{}"),
        "no user": _post(_PATH, {"Content-Type": "application/json"}, b"{}"),
        "elsewhere": _post("/contexture/notify/other", known, b"{}"),
        "large": _post(_PATH, {**known, "Content-Length": "99999999999999999999"}, b"{"),
    }


def _post(path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    return f"POST {path}\n".encode() + request(headers, body)


_WORDS = (
    b"Content-Length: ",
    b"Content-Encoding: gzip",
    b"Authorization: Basic ",
    b"Bearer t0ken",
    b"Fiware-Correlator: ",
    b"Transfer-Encoding: chunked",
    b"Link: <",
    b"/contexture/notify/",
    b"PUT ",
    b"%00",
    b"/../",
)

TARGETS = (fuzzed.Target("reception", "the endpoint of notifications", _answered, _inputs, "request", _WORDS),)
