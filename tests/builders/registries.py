"""Registries to be asked: the test registry over HTTP without waits, and answers that a test writes itself."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import httpx

from contexture.sources.http.transport import RetryBudget
from contexture.sources.sdmx.registry import RegistryConnection, RegistryTransaction

ML_2_1 = "application/vnd.sdmx.structure+xml;version=2.1"
JSON_2_0 = "application/vnd.sdmx.structure+json;version=2.0.0"
FUSION_JSON = "application/vnd.fusion.json"
EDI = "application/vnd.sdmx.structure;version=edi"
START = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)
AT_ONCE = RetryBudget(attempts=3, first_wait_seconds=0.0, longest_wait_seconds=0.0, sleep=lambda seconds: None)
NOTHING_FOUND = (
    b'<mes:Error xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message">'
    b'<mes:ErrorMessage code="100"/></mes:Error>'
)
Handler = Callable[[httpx.Request], httpx.Response]


def answering(answers: Mapping[str, httpx.Response | Handler]) -> httpx.MockTransport:
    """A registry that answers by path; anything else is not found, as a web server says it."""

    def handle(request: httpx.Request) -> httpx.Response:
        found = answers.get(request.url.path)
        if found is None:
            return httpx.Response(404, html="<html>not here</html>")
        return _streamed(found(request) if callable(found) else found)

    return httpx.MockTransport(handle)


def _streamed(response: httpx.Response) -> httpx.Response:
    """A new answer that comes in pieces, as from a network."""
    if not isinstance(response.stream, httpx.ByteStream):
        return response
    return httpx.Response(response.status_code, headers=response.headers, stream=Pieces(response.content))


def sequence(*responses: httpx.Response) -> Handler:
    """One after the other; the last one for ever."""
    waiting = list(responses)
    return lambda request: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def packed(body: bytes, media_type: str = ML_2_1, *, lost_bytes: int = 0) -> httpx.Response:
    """An answer in gzip, of which some of the last bytes may be lost."""
    content = gzip.compress(body)
    headers = {"content-type": media_type, "content-encoding": "gzip"}
    return httpx.Response(200, headers=headers, stream=Pieces(content[: len(content) - lost_bytes]))


class Pieces(httpx.SyncByteStream):
    """A body that comes in pieces of 100 bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self):
        yield from (self._content[start : start + 100] for start in range(0, len(self._content), 100))


def connection(url: str, **settings: object) -> RegistryConnection:
    """The connection to a test registry."""
    return RegistryConnection(url, **{"timeout_seconds": 60.0, **settings})


def summaries(transactions: tuple[RegistryTransaction, ...]) -> list[tuple[int, str, list[str], list[str]]]:
    """Transactions as they are compared: id, action, changed, deleted."""
    return [(each.id, each.action, list(each.changed), list(each.deleted)) for each in transactions]
