"""The client against a network that is a function."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import EntityQuery

SECRET = "s3cr3t-77"
DATE = {"date": "Thu, 01 Jan 2026 12:00:00 GMT"}
Handler = Callable[[httpx.Request], httpx.Response]


@dataclass
class Clock:
    """Time that passes only during a sleep."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def broker(handler: Handler, clock: Clock | None = None, **patience: Any) -> NgsiV2Client:
    clock = clock or Clock()
    return NgsiV2Client(
        BrokerConnection(f"http://user:{SECRET}@broker:1026/", {"X-Auth-Token": SECRET}, timeout_seconds=5.0),
        "vehicles",
        budget=RetryBudget(sleep=clock.sleep, clock=lambda: clock.now, **patience),
        transport=httpx.MockTransport(handler),
    )


def entity(number: int) -> str:
    shown = f"2026-01-01T00:00:{number:02}.000Z"
    time = f'{{"type":"DateTime","value":"{shown}"}}'
    return f'{{"id":"e{number}", "type":"t", "n":{{"value":1.0E5}},"dateCreated":{time},"dateModified":{time}}}'


def listed(*numbers: int, **headers: str) -> httpx.Response:
    return httpx.Response(200, content="[" + " , ".join(map(entity, numbers)) + "]", headers=DATE | headers)


def served(total: int) -> Handler:
    """A broker with `total` entities, one a second."""

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v2/subscriptions":
            return httpx.Response(200, json=[], headers=DATE)
        given = request.url.params
        since = int(given["q"].split(":")[-1][:2]) if "q" in given else 0
        numbers = range(since, total)
        offset, limit = int(given["offset"]), int(given["limit"])
        return listed(*numbers[offset : offset + limit])

    return handle


def answering(*responses: httpx.Response | Exception) -> tuple[Handler, list[httpx.Request]]:
    """One answer after the other, the last one for ever; and what was asked."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        response = responses[min(len(asked), len(responses) - 1)]
        asked.append(request)
        if isinstance(response, Exception):
            raise response
        return response

    return handle, asked


def recorded(handle: Handler) -> tuple[Handler, list[httpx.Request]]:
    """The same answers, and what was asked."""
    asked: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return handle(request)

    return record, asked


def test_a_walk_gives_every_entity_once_as_the_broker_wrote_it() -> None:
    pages = list(broker(served(10)).scan(EntityQuery("/a", page_size=4)))

    assert [head.id for page in pages for head in page.heads] == [f"e{number}" for number in range(10)]
    assert pages[0].entities[0] == entity(0).encode()
    assert pages[0].heads[0].path == "/a"
    assert pages[0].broker_time == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert abs((datetime.now(UTC) - pages[0].received_at).total_seconds()) < 60


def test_a_sweep_gives_every_page_by_its_number_and_ends_with_two_empty_ones() -> None:
    handle, asked = recorded(served(10))
    pages = list(broker(handle).scan_by_id(EntityQuery("/a", page_size=4)))

    offsets = [request.url.params["offset"] for request in asked if request.url.path == "/v2/entities"]
    assert offsets == ["0", "4", "8", "10", "10"]
    assert [[head.id for head in page.heads] for page in pages] == [
        ["e0", "e1", "e2", "e3"],
        ["e4", "e5", "e6", "e7"],
        ["e8", "e9"],
    ]


def test_a_sweep_that_ends_in_an_empty_page_of_a_broker_without_database_fails() -> None:
    handle, _ = answering(listed(0, 1), listed(), httpx.Response(500, json={}))
    with pytest.raises(RetriableError, match="responded with 500"):
        list(broker(handle).scan_by_id(EntityQuery("/a", page_size=2)))


def test_requests_carry_tenant_path_and_credentials_in_lower_case_headers() -> None:
    handle, asked = answering(listed(1))
    list(broker(handle).scan(EntityQuery("/a/#")))

    names = [name for name, _ in asked[0].headers.raw]
    assert all(name == name.lower() for name in (b"fiware-service", b"fiware-servicepath", b"x-auth-token"))
    assert {b"fiware-service", b"fiware-servicepath", b"x-auth-token"} <= set(names)
    assert asked[0].headers["fiware-service"] == "vehicles"
    assert asked[0].headers["fiware-servicepath"] == "/a/#"
    assert asked[0].url.path == "/v2/entities"
    assert asked[0].url.params["options"] == "skipForwarding"


def test_an_empty_page_is_believed_only_when_it_comes_again_after_a_probe() -> None:
    handle, asked = answering(listed(), httpx.Response(200, json=[]))
    assert list(broker(handle).scan(EntityQuery("/a"))) == []
    assert [request.url.path for request in asked] == ["/v2/entities", "/v2/subscriptions"] * 2


def test_one_empty_page_of_a_broker_that_lost_its_database_for_a_moment_ends_no_walk() -> None:
    handle, _ = answering(listed(0, 1), listed(), httpx.Response(200, json=[]), listed(1, 2), listed(2), listed(2))
    pages = broker(handle).scan(EntityQuery("/a", page_size=2))
    assert [head.id for page in pages for head in page.heads] == ["e0", "e1", "e2"]


def test_one_page_cut_short_ends_no_walk() -> None:
    handle, _ = answering(listed(0, 1, 2), listed(2), listed(2, 3, 4), listed(4), listed(4))
    pages = broker(handle).scan(EntityQuery("/a", page_size=3))
    assert [head.id for page in pages for head in page.heads] == ["e0", "e1", "e2", "e3", "e4"]


def test_an_empty_page_of_a_broker_without_database_fails() -> None:
    handle, _ = answering(listed(), httpx.Response(500, json={"error": "InternalServerError"}))
    with pytest.raises(RetriableError, match="responded with 500") as raised:
        list(broker(handle).scan(EntityQuery("/a")))
    assert "database" in raised.value.next_step


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_illness_is_waited_out(status: int) -> None:
    clock = Clock()
    handle, asked = answering(httpx.Response(status), httpx.ConnectError("refused"), listed(1))
    assert len(list(broker(handle, clock).scan(EntityQuery("/a")))) == 1
    assert len(asked) == 4
    assert len(clock.slept) == 2


@pytest.mark.parametrize(
    "failure", [httpx.ConnectError("x"), httpx.ConnectTimeout("x"), httpx.RemoteProtocolError("x")]
)
def test_a_broker_that_stays_away_is_reported_after_some_attempts(failure: Exception) -> None:
    handle, asked = answering(failure)
    with pytest.raises(RetriableError, match=r"http://broker:1026 cannot be reached") as raised:
        broker(handle, attempts=4).probe()
    assert len(asked) == 4
    assert "host and port" in raised.value.next_step


@pytest.mark.parametrize(
    ("status", "message", "next_step"),
    [
        (400, "options, attrs, metadata, orderBy", "service_path"),
        (401, "refuses the credentials of the connection", "headers of the connection"),
        (403, "refuses the credentials of the connection", "headers of the connection"),
        (404, "does not respond as a context broker", "address"),
        (302, "does not respond as a context broker", "address"),
    ],
)
def test_a_refusal_is_a_configuration_error_and_not_asked_again(status: int, message: str, next_step: str) -> None:
    handle, asked = answering(httpx.Response(status, text=f"<h1>{SECRET}</h1>"))
    with pytest.raises(ConfigurationError, match=message) as raised:
        list(broker(handle).scan(EntityQuery("/a")))
    assert next_step in raised.value.next_step
    assert len(asked) == 1


@pytest.mark.parametrize("status", [404, 405, 406, 409, 411, 413, 415, 422])
def test_what_is_wrong_with_the_request_is_never_asked_again(status: int) -> None:
    handle, asked = answering(httpx.Response(status, json={"error": "X", "description": "&lt;free text&gt;"}))
    with pytest.raises(ConfigurationError) as raised:
        broker(handle).probe()
    assert len(asked) == 1
    assert "free text" not in str(raised.value)


def test_waits_grow_with_jitter() -> None:
    waits = []
    for _ in range(20):
        clock = Clock()
        handle, _ = answering(httpx.ConnectError("refused"))
        with pytest.raises(RetriableError):
            broker(handle, clock, attempts=4, first_wait_seconds=1.0, longest_wait_seconds=2.0).probe()
        waits.append(clock.slept)
    assert len({tuple(slept) for slept in waits}) > 1
    assert all(0 <= seconds <= bound for slept in waits for seconds, bound in zip(slept, (1.0, 2.0, 2.0), strict=True))


@pytest.mark.parametrize("content", ["<html>login</html>", '{"entities": []}', "[1, 2", "[" * 100_000])
def test_what_is_no_list_of_entities_is_a_configuration_error(content: str) -> None:
    handle, _ = answering(httpx.Response(200, text=content))
    with pytest.raises(ConfigurationError, match="JSON list of entities"):
        list(broker(handle).scan(EntityQuery("/a")))


def test_an_entity_with_half_of_a_character_does_not_spoil_its_page() -> None:
    content = f'[{entity(1)}, {{"id":"e\\ud800","type":"t"}}, {entity(2)}]'
    handle, _ = answering(httpx.Response(200, text=content, headers=DATE))

    (page,) = broker(handle).scan(EntityQuery("/a"))

    assert page.entities == [entity(1).encode(), b'{"id":"e\\ud800","type":"t"}', entity(2).encode()]
    assert [head.id for head in page.heads] == ["e1", None, "e2"]


def test_a_page_that_takes_too_long_is_asked_for_in_halves() -> None:
    limits: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        limits.append(int(request.url.params["limit"]))
        if limits[-1] > 250:
            raise httpx.ReadTimeout("slow")
        return served(3)(request)

    pages = list(broker(handle).scan(EntityQuery("/a")))
    assert limits == [1000, 500, 250, 250]
    assert len(pages[0].entities) == 3


def test_a_broker_that_is_too_slow_for_the_smallest_page_is_reported() -> None:
    handle, _ = answering(httpx.ReadTimeout("slow"))
    with pytest.raises(RetriableError, match="in time") as raised:
        list(broker(handle).scan(EntityQuery("/a")))
    assert "timeout_seconds" in raised.value.next_step


def test_a_page_too_large_for_memory_is_asked_for_in_halves() -> None:
    pages = list(broker(served(8), page_bytes=3 * len(entity(0)) + 20).scan(EntityQuery("/a", page_size=8)))
    assert sum(len(page.entities) for page in pages) == 8
    assert max(len(page.entities) for page in pages) < 4


def test_entities_too_large_to_be_read_at_all_are_reported() -> None:
    with pytest.raises(RejectedError, match="larger than 10 bytes"):
        list(broker(served(8), page_bytes=10).scan(EntityQuery("/a")))


def test_a_broker_that_sends_slowly_is_not_waited_for_piece_by_piece() -> None:
    clock = Clock()

    class Drip(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while clock.now < 1000:
                clock.now += 1.0
                yield b" "

    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Drip())

    with pytest.raises(RetriableError, match="in time"):
        broker(handle, clock).probe()
    assert clock.now < 10


def test_a_walk_ends_at_its_deadline() -> None:
    clock = Clock()
    serve = served(60)

    def handle(request: httpx.Request) -> httpx.Response:
        clock.now += 10
        return serve(request)

    with pytest.raises(RetriableError, match="longer than the publication allows") as raised:
        list(broker(handle, clock).scan(EntityQuery("/a", page_size=3), deadline_seconds=45))
    assert clock.now == 50
    assert "walk_deadline_seconds" in raised.value.next_step


@pytest.mark.parametrize(("way", "pages"), [("scan", 5), ("scan_by_id", 4)])
def test_the_broker_is_left_alone_between_two_pages(way: str, pages: int) -> None:
    clock = Clock()
    asked = list(getattr(broker(served(5), clock, pause_seconds=0.25), way)(EntityQuery("/a", page_size=3)))
    assert sum(len(page.entities) for page in asked) == 5
    assert clock.slept == [0.25] * (pages - 1)


@pytest.mark.parametrize("q", ["a>1", "a>" + "1" * 2000], ids=["by address", "by body"])
def test_pauses_end_at_the_deadline_of_the_walk(q: str) -> None:
    clock = Clock()
    with pytest.raises(RetriableError, match="longer than the publication allows"):
        list(broker(endless, clock, pause_seconds=30).scan(EntityQuery("/a", q=q, page_size=2), deadline_seconds=100))
    assert clock.slept == [30, 30, 30, 10]


def endless(request: httpx.Request) -> httpx.Response:
    """Always a full page of new entities; they share one time."""
    first = int(request.url.params["offset"])
    return listed_at_one_time(first, first + 1)


def listed_at_one_time(*numbers: int) -> httpx.Response:
    return httpx.Response(200, content="[" + ",".join(entity(n).replace(f":{n:02}.", ":00.") for n in numbers) + "]")


def test_a_place_in_the_order_shows_its_time() -> None:
    handle, asked = answering(listed(7))
    assert broker(handle).time_at(EntityQuery("/a", types=("car",)), 400) == "2026-01-01T00:00:07.000Z"
    assert dict(asked[0].url.params) == {
        "limit": "1",
        "offset": "400",
        "options": "skipForwarding",
        "attrs": "dateCreated,dateModified,dateExpires,servicePath",
        "metadata": "dateModified,*",
        "orderBy": "dateCreated,id,type",
        "type": "car",
    }
    assert broker(answering(listed())[0]).time_at(EntityQuery("/a"), 400) is None


def test_a_broker_that_is_away_is_not_waited_for_beyond_the_deadline() -> None:
    clock = Clock()

    def handle(_: httpx.Request) -> httpx.Response:
        clock.now += 10
        raise httpx.ConnectError("refused")

    with pytest.raises(RetriableError, match="cannot be reached"):
        list(broker(handle, clock, attempts=1000).scan(EntityQuery("/a"), deadline_seconds=100))
    assert clock.now < 150


def test_a_count_is_the_total_of_the_selection() -> None:
    handle, asked = answering(listed(1, **{"Fiware-Total-Count": "4711"}))
    assert broker(handle).count(EntityQuery("/a", types=("car",))) == 4711
    assert dict(asked[0].url.params)["options"] == "count,skipForwarding"
    assert dict(asked[0].url.params)["type"] == "car"


def test_a_missing_count_is_reported() -> None:
    handle, _ = answering(listed(1))
    with pytest.raises(ConfigurationError, match="how many"):
        broker(handle).count(EntityQuery("/a"))


def test_a_probe_returns_the_brokers_clock_and_requests_what_needs_the_database() -> None:
    handle, asked = answering(httpx.Response(200, json=[], headers=DATE))
    assert broker(handle).probe() == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (asked[0].url.path, dict(asked[0].url.params)) == ("/v2/subscriptions", {"limit": "1"})


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Jan 2026 12:00:00 GMT"])
def test_a_broker_that_does_not_say_the_time_is_taken_to_have_ours(date: str) -> None:
    handle, _ = answering(httpx.Response(200, json=[], headers={"date": date}))
    assert abs((datetime.now(UTC) - broker(handle).probe()).total_seconds()) < 60


def test_an_untrusted_certificate_is_a_configuration_error() -> None:
    refused = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    refused.__cause__ = ssl.SSLCertVerificationError()
    handle, asked = answering(refused)
    with pytest.raises(ConfigurationError, match="not trusted") as raised:
        broker(handle).probe()
    assert "verify" in raised.value.next_step
    assert len(asked) == 1


def _failures() -> list[httpx.Response | Exception]:
    return [
        httpx.Response(401, json={"description": SECRET}),
        httpx.Response(400, text=SECRET),
        httpx.Response(503, headers={"www-authenticate": SECRET}),
        httpx.Response(200, text=SECRET),
        httpx.ConnectError("refused"),
        httpx.UnsupportedProtocol("no"),
    ]


@pytest.mark.parametrize("failure", _failures(), ids=lambda failure: type(failure).__name__)
def test_no_error_holds_a_secret(failure: httpx.Response | Exception) -> None:
    handle, _ = answering(failure)
    with pytest.raises(ContextureError) as raised:
        list(broker(handle).scan(EntityQuery("/a")))
    assert SECRET not in str(raised.value)
    assert SECRET not in json.dumps(raised.value.as_dict())
