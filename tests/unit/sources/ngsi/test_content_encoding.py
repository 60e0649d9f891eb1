"""How packed responses are unpacked: gzip alone, and never more than the limit allows."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import httpx
import pytest

from contexture.errors import ConfigurationError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.content_encoding import decode_content
from contexture.sources.http.errors import BrokerUnavailableError, PageTooLargeError
from contexture.sources.http.tokens import TokenRequest, Tokens
from contexture.sources.http.transport import HttpRequest, HttpTransport, RetryBudget
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import EntityQuery

CONNECTION = BrokerConnection("http://broker:1026")
QUESTION = HttpRequest("GET", "/v2/entities", {}, {})
# One frame of zstd that represents 2 GB of zeros would be 64 kB; the coding alone decides here.
ZSTD = b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00\x99\xe9\xd8\x51"


class Pieces(httpx.SyncByteStream):
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces


def packed(body: bytes, coding: str, status: int = 200, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status, headers={"content-encoding": coding, **headers}, stream=Pieces(body))


def network(handler: Callable[[httpx.Request], httpx.Response], **patience: int) -> HttpTransport:
    given = RetryBudget(attempts=1, sleep=lambda _: None, **patience)  # type: ignore[arg-type]
    return HttpTransport(CONNECTION, given, httpx.MockTransport(handler))


def test_only_gzip_is_requested_whatever_headers_the_connection_has() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["accept-encoding"])
        return httpx.Response(200, json=[])

    connection = BrokerConnection("http://broker:1026", {"Accept-Encoding": "zstd, br"})
    HttpTransport(connection, RetryBudget(), httpx.MockTransport(handle)).send(QUESTION)

    assert seen == ["gzip"]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
def test_gzip_is_unpacked(coding: str) -> None:
    assert network(packed(gzip.compress(b"[1]"), coding)).send(QUESTION).body == b"[1]"


@pytest.mark.parametrize("coding", ["zstd", "br", "deflate", "gzip, gzip", "gzip, zstd", "identity, gzip"])
def test_any_other_coding_is_refused_by_name_and_never_unpacked(coding: str) -> None:
    with pytest.raises(ConfigurationError, match=f"compressed its response with '{coding}'"):
        network(packed(ZSTD, coding)).send(QUESTION)


@pytest.mark.slow
def test_a_bomb_never_takes_more_memory_than_the_limit_and_a_few_pieces() -> None:
    bomb = gzip.compress(bytes(300_000_000), 1)
    limited = network(packed(bomb, "gzip"), page_bytes=1 << 20)

    tracemalloc.start()
    try:
        with pytest.raises(PageTooLargeError):
            limited.send(QUESTION)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20_000_000


@pytest.mark.parametrize("body", [gzip.compress(b"[1]" * 100, mtime=0)[:-3], b"no gzip", b"", zlib.compress(b"[1]")])
def test_a_body_that_is_no_whole_gzip_is_read_again(body: bytes) -> None:
    with pytest.raises(BrokerUnavailableError, match="ends before it is complete"):
        network(packed(body, "gzip")).send(QUESTION)


def test_several_members_of_gzip_are_one_body() -> None:
    body = gzip.compress(b"[1,") + gzip.compress(b"2]")
    assert b"".join(decode_content([body], "gzip", "the broker")) == b"[1,2]"


def test_a_problem_that_is_packed_is_not_unpacked_for_its_name() -> None:
    named = {"content-type": "application/json", "content-length": "20"}
    answer = network(packed(ZSTD, "zstd", 400, **named))
    with pytest.raises(ConfigurationError):
        answer.send(HttpRequest("GET", "/ngsi-ld/v1/entities", {}, {}))


def test_a_token_service_that_packs_otherwise_is_refused() -> None:
    client = httpx.Client(transport=httpx.MockTransport(packed(ZSTD, "zstd")))
    grant = TokenRequest("client_credentials", "http://tokens/token", client_id="c", client_secret="s")
    with pytest.raises(ConfigurationError, match="compressed its response with 'zstd'"):
        Tokens(grant, client, lambda: 0.0).header()


def test_a_walk_reads_packed_pages() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v2/subscriptions":
            return httpx.Response(200, json=[])
        return packed(gzip.compress(b'[{"id":"a","type":"t"}]'), "gzip")(request)

    with NgsiV2Client(CONNECTION, "s", transport=httpx.MockTransport(handle)) as broker:
        assert [page.entities for page in broker.scan(EntityQuery("/a"))] == [[b'{"id":"a","type":"t"}']]
