"""One question: tries, waits, packing, bounds, and what statuses mean."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from builders.registries import AT_ONCE, ML_2_1, NOTHING_FOUND, Pieces, answering, connection, packed, sequence
from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError, ReplyTooLargeError
from contexture.sources.http.tokens import TokenRequest
from contexture.sources.sdmx.registry.transport import StructureDownloads, StructureRequest

BODY = b"<structures/>" * 50
ASKED = StructureRequest("/structure/x", ML_2_1)
OK = httpx.Response(200, content=BODY)


def fetched(tmp_path: Path, answer: object, **settings: object):
    network = StructureDownloads(
        connection("http://registry", **settings), AT_ONCE, answering({"/structure/x": answer})
    )
    return network.retrying(lambda: network.fetch(ASKED, tmp_path / "into"))


def test_the_body_goes_into_a_file_and_the_question_names_format_and_all_languages(tmp_path: Path):
    seen: list[httpx.Headers] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return OK

    found = fetched(tmp_path, answer, headers={"X-Key": "k"})
    assert (found.status, found.size, (tmp_path / "into").read_bytes()) == (200, 650, BODY)
    assert {name: seen[0][name] for name in ("accept", "accept-language", "accept-encoding", "x-key")} == {
        "accept": ML_2_1,
        "accept-language": "*",
        "accept-encoding": "gzip",
        "x-key": "k",
    }


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_fault_is_tried_three_times(tmp_path: Path, status: int):
    ill = httpx.Response(status)
    assert fetched(tmp_path, sequence(ill, ill, OK)).size == 650
    with pytest.raises(RegistryUnavailableError, match=f"responded with {status}"):
        fetched(tmp_path, sequence(ill, ill, ill, OK))


def test_it_waits_as_long_as_the_registry_asks(tmp_path: Path):
    waits: list[float] = []
    patience = replace(AT_ONCE, sleep=waits.append)
    busy = httpx.Response(503, headers={"retry-after": "7"})
    transport = answering({"/structure/x": sequence(busy, httpx.Response(503, headers={"retry-after": "9999"}), OK)})
    network = StructureDownloads(connection("http://registry"), patience, transport)
    network.retrying(lambda: network.fetch(ASKED, tmp_path / "into"))
    assert waits == [7.0, 120.0]


def test_a_registry_that_is_away_is_retriable(tmp_path: Path):
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(RegistryUnavailableError, match=r"the structure registry at http://registry cannot be reached"):
        fetched(tmp_path, away)


def test_gzip_is_unpacked_and_known_to_be_whole(tmp_path: Path):
    assert fetched(tmp_path, packed(BODY)).size == 650
    assert (tmp_path / "into").read_bytes() == BODY
    for lost in (1, 9, 20):
        with pytest.raises(IncompleteReplyError, match="ends before it is complete"):
            fetched(tmp_path, lambda request, lost=lost: packed(BODY, lost_bytes=lost))
        assert not (tmp_path / "into").exists()


def test_another_encoding_than_the_requested_one_is_reported(tmp_path: Path):
    odd = httpx.Response(200, headers={"content-encoding": "compress"}, stream=Pieces(b"x"))
    with pytest.raises(IncompleteReplyError, match="compressed its response with 'compress'"):
        fetched(tmp_path, lambda request: odd)


def test_a_response_beyond_the_limit_is_refused_before_it_is_decoded_whole(tmp_path: Path):
    """A few bytes of gzip stand for very many."""
    bomb = packed(b"\0" * 50_000_000)
    with pytest.raises(ReplyTooLargeError, match=r"larger than 1,000,000 bytes. Next: raise reply_bytes"):
        fetched(tmp_path, bomb, reply_bytes=1_000_000)
    assert not (tmp_path / "into").exists()


def test_a_registry_that_sends_too_slowly_is_given_up(tmp_path: Path):
    clock = iter(range(0, 1000, 3))
    patience = replace(AT_ONCE, clock=lambda: float(next(clock)))

    class Drops(httpx.SyncByteStream):
        def __iter__(self):
            yield from (b"<" for _ in range(10))

    drip = answering({"/structure/x": lambda request: httpx.Response(200, stream=Drops())})
    network = StructureDownloads(connection("http://registry", timeout_seconds=5.0), patience, drip)
    with pytest.raises(RegistryUnavailableError, match="sends too slowly"):
        network.fetch(ASKED, tmp_path / "into")


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_a_persons_matter(tmp_path: Path, status: int):
    with pytest.raises(ConfigurationError, match=f"refuses the credentials of the connection \\({status}\\)"):
        fetched(tmp_path, sequence(httpx.Response(status), OK))


def test_an_address_that_redirects_is_reported(tmp_path: Path):
    """Credentials are sent nowhere but to the address that they were given for."""
    moved = httpx.Response(302, headers={"location": "https://elsewhere/"})
    with pytest.raises(ConfigurationError, match="redirects to another address"):
        fetched(tmp_path, moved)


def test_an_access_token_that_ended_early_is_asked_for_once_more(tmp_path: Path):
    given = iter(["first", "second"])
    seen: list[str] = []

    def token(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=json.dumps({"access_token": next(given), "expires_in": 300}))

    def structures(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return OK if len(seen) == 2 else httpx.Response(401)

    grant = TokenRequest("client_credentials", "http://registry/token", client_id="me", client_secret="s")
    transport = answering({"/structure/x": structures, "/token": token})
    network = StructureDownloads(connection("http://registry", grant=grant), AT_ONCE, transport)
    network.fetch(ASKED, tmp_path / "into")
    assert seen == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (httpx.Response(404, content=NOTHING_FOUND), True),
        (httpx.Response(404, headers={"content-type": "application/vnd.sdmx.error+xml;version=2.1"}), True),
        (httpx.Response(404, json={"errors": [{"code": 100}]}), True),
        (httpx.Response(404, html="<html><h1>Error</h1></html>"), False),
        (httpx.Response(404), False),
        (OK, False),
    ],
)
def test_only_error_messages_of_sdmx_are_the_registrys_own_word(
    tmp_path: Path, response: httpx.Response, expected: bool
):
    assert fetched(tmp_path, response).is_registrys is expected
