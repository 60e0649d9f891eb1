"""Notifying over HTTP: a 200 means kept, everything else says why not and keeps nothing."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import orjson
import pytest

from builders.inbox_disk import FullShelf
from builders.reception_server import serving
from contexture.reception import Credentials, NotificationTarget, ThisMachineOnly
from contexture.reception.application import read_body
from contexture.sources.ngsi.notifications.parsing import parse_notification
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter
from contexture_sandbox.context_broker import TestBroker

pytestmark = pytest.mark.slow

ACCESS = Credentials.of(tokens=["t0ken"], users=[("broker", "pass:word")])
ENTITY = {"id": "urn:a:1", "type": "Sensor", "t": {"type": "Number", "value": 20.50, "metadata": {}}}
BODY = orjson.dumps({"subscriptionId": "s1", "data": [ENTITY]})
HEADERS = {
    "Authorization": "Bearer t0ken",
    "Content-Type": "application/json; charset=utf-8",
    "Fiware-Service": "city",
    "Fiware-ServicePath": "/a/b",
    "Fiware-Correlator": "c-1; cbnotif=1",
    "Ngsiv2-AttrsFormat": "normalized",
}


class Reception:
    """A running reception of the publication `air`, and what it kept."""

    def __init__(self, url: str, storage: Home) -> None:
        self.url = f"{url}/contexture/notify/air"
        self._reader = storage.publication("air").inbox

    def post(self, body: bytes = BODY, **changed: str | None) -> httpx.Response:
        headers = {**HEADERS, **{name.replace("_", "-"): value for name, value in changed.items()}}
        return httpx.post(
            self.url, content=body, headers={name: value for name, value in headers.items() if value is not None}
        )

    def entries(self):
        return list(self._reader.entries(self._reader.files()))


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def inbox(storage: Home) -> Iterator[InboxWriter]:
    writer = InboxWriter(storage.publication("air").open_inbox_folder())
    yield writer
    writer.close()


@pytest.fixture
def air(storage: Home, inbox: InboxWriter) -> Iterator[Reception]:
    with serving({"air": NotificationTarget("city", ("/a/#",), ACCESS, inbox, maximum_bytes=2000)}) as url:
        yield Reception(url, storage)


def test_a_notification_is_kept_as_it_came_and_its_correlator_answered(air: Reception) -> None:
    response = air.post()
    assert (response.status_code, response.headers["Fiware-Correlator"]) == (200, "c-1; cbnotif=1")
    (entry,) = air.entries()
    assert entry.body == BODY
    assert entry.headers == {
        "content-type": "application/json; charset=utf-8",
        "fiware-service": "city",
        "fiware-servicepath": "/a/b",
        "fiware-correlator": "c-1; cbnotif=1",
        "ngsiv2-attrsformat": "normalized",
    }
    (event,) = parse_notification(entry.headers, entry.body, received_at=entry.received_at)
    assert (event.identity.service_path, event.identity.id) == ("/a/b", "urn:a:1")


def test_a_notification_without_a_correlator_gets_one_that_is_kept_too(air: Reception) -> None:
    correlator = air.post(Fiware_Correlator=None).headers["Fiware-Correlator"]
    assert str(uuid.UUID(correlator)) == correlator
    assert [entry.headers["fiware-correlator"] for entry in air.entries()] == [correlator]


@pytest.mark.parametrize(
    ("changed", "status", "described"),
    [
        ({"Fiware_Service": "other"}, 400, "not the publication's"),
        ({"Fiware_Service": None}, 400, "not the publication's"),
        ({"Fiware_ServicePath": "/b"}, 400, "outside the publication's selection"),
        ({"Fiware_ServicePath": "/ab"}, 400, "outside the publication's selection"),
        ({"Fiware_ServicePath": None}, 400, "outside the publication's selection"),
        ({"Ngsiv2_AttrsFormat": "keyValues"}, 400, "normalized"),
        ({"Content_Type": "text/plain"}, 415, "not JSON"),
        ({"Content_Encoding": "gzip"}, 415, "compressed"),
        ({"body": b"{"}, 400, "is not JSON"),
        ({"body": b""}, 400, "empty"),
        ({"body": b" " * 2001}, 413, "more than 2000 bytes"),
    ],
)
def test_what_can_not_be_taken_is_refused_and_not_kept(air: Reception, changed, status: int, described: str) -> None:
    response = air.post(**changed)
    assert (response.status_code, response.headers["Fiware-Correlator"]) == (status, "c-1; cbnotif=1")
    assert described in response.json()["description"]
    assert air.entries() == []


@pytest.mark.parametrize(("ids", "status"), [(("urn:a:1", "urn:a:2"), 200), (("urn:a:2",), 400)])
def test_only_the_ids_that_are_selected_are_taken(
    storage: Home, inbox: InboxWriter, ids: tuple[str, ...], status: int
) -> None:
    with serving({"air": NotificationTarget("city", ("/a/#",), ACCESS, inbox, ids=ids)}) as url:
        response = Reception(url, storage).post()
    assert response.status_code == status
    assert ("the id 'urn:a:1' is outside" in response.text) is (status == 400)


def test_a_service_in_capitals_is_the_same_service(air: Reception) -> None:
    assert air.post(Fiware_Service="City").status_code == 200


def test_a_repeated_header_is_refused(air: Reception) -> None:
    twice = [*HEADERS.items(), ("Fiware-ServicePath", "/a")]
    response = httpx.post(air.url, content=BODY, headers=twice)
    assert (response.status_code, "is there twice" in response.text) == (400, True)


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("bearer t0ken", 200),
        ("Basic YnJva2VyOnBhc3M6d29yZA==", 200),  # broker:pass:word
        ("Basic YnJva2VyOnBhc3M=", 401),  # broker:pass
        ("Basic dDBrZW4=", 401),  # the token is no password
        ("Basic %", 401),
        ("Bearer t0ke", 401),
        ("Bearer", 401),
        ("t0ken", 401),
        (None, 401),
    ],
)
def test_only_who_shows_a_credential_may_notify(air: Reception, authorization: str | None, status: int) -> None:
    response = air.post(Authorization=authorization)
    assert response.status_code == status
    assert len(air.entries()) == (1 if status == 200 else 0)
    assert ("WWW-Authenticate" in response.headers) == (status == 401)


def test_only_clients_that_may_notify_learn_that_a_publication_is_unknown(air: Reception) -> None:
    air.url = air.url.replace("/air", "/water")
    assert [air.post().status_code, air.post(Authorization=None).status_code] == [404, 401]


def test_only_posts_are_answered(air: Reception) -> None:
    assert httpx.get(air.url, headers=HEADERS).status_code == 405


def test_a_body_without_a_length_is_refused_once_it_is_too_large_not_at_its_end(air: Reception) -> None:
    host, port = httpx.URL(air.url).host, httpx.URL(air.url).port
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    with socket.create_connection((host, port), timeout=10) as connection:
        connection.sendall(
            f"POST /contexture/notify/air HTTP/1.1\r\nHost: x\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode()
            + b"1000\r\n"
            + b" " * 4096
            + b"\r\n"  # and no end
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    assert air.entries() == []


def test_a_full_disk_is_answered_by_503_until_there_is_room() -> None:
    shelf = FullShelf()
    writer = InboxWriter(shelf)
    with serving({"air": NotificationTarget("city", ("/#",), ACCESS, writer)}) as url:
        target = f"{url}/contexture/notify/air"
        refused = httpx.post(target, content=BODY, headers=HEADERS)
        assert (refused.status_code, refused.headers["Retry-After"], shelf.files) == (503, "5", {})
        shelf.full = False
        assert httpx.post(target, content=BODY, headers=HEADERS).status_code == 200
    writer.close()
    assert len(shelf.files) == 1


def test_a_closed_inbox_is_answered_by_503(air: Reception, inbox: InboxWriter) -> None:
    inbox.close()
    response = air.post()
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")


def test_many_notifiers_at_once_lose_nothing(air: Reception) -> None:
    bodies = [orjson.dumps({"subscriptionId": "s", "data": [{**ENTITY, "id": str(number)}]}) for number in range(60)]
    with ThreadPoolExecutor(8) as notifiers:
        statuses = set(notifiers.map(lambda body: air.post(body).status_code, bodies))
    assert statuses == {200}
    entries = air.entries()
    assert sorted(entry.body for entry in entries) == sorted(bodies)
    assert [entry.sequence for entry in entries] == list(range(60))


def test_without_credentials_this_machine_may_notify_but_not_through_a_proxy(inbox: InboxWriter) -> None:
    with serving({"air": NotificationTarget("city", ("/#",), ThisMachineOnly(without_credentials=True), inbox)}) as url:
        headers = {name: value for name, value in HEADERS.items() if name != "Authorization"}
        target = f"{url}/contexture/notify/air"
        assert httpx.post(target, content=BODY, headers=headers).status_code == 200
        forwarded = {**headers, "X-Forwarded-For": "127.0.0.1"}
        assert httpx.post(target, content=BODY, headers=forwarded).status_code == 401


def test_a_subscription_of_a_broker_fills_the_inbox(storage: Home, inbox: InboxWriter) -> None:
    open_target = NotificationTarget("city", ("/a/#",), ThisMachineOnly(without_credentials=True), inbox)
    tenant = {"Fiware-Service": "city", "Fiware-ServicePath": "/a"}
    with serving({"air": open_target}) as url, TestBroker() as broker:
        subscription = {
            "subject": {"entities": [{"idPattern": ".*", "type": "Sensor"}]},
            "notification": {"http": {"url": f"{url}/contexture/notify/air"}},
        }
        httpx.post(f"{broker.url}/v2/subscriptions", json=subscription, headers=tenant).raise_for_status()
        httpx.post(f"{broker.url}/v2/entities", json=ENTITY, headers=tenant).raise_for_status()
        broker.settle()
    reader = storage.publication("air").inbox
    events = [
        event
        for entry in reader.entries(reader.files())
        for event in parse_notification(entry.headers, entry.body, received_at=entry.received_at)
    ]
    assert [(event.operation, event.identity.service, event.identity.service_path) for event in events] == [
        ("upsert", "city", "/a")
    ]


def test_a_body_that_does_not_arrive_in_time_is_given_up(air: Reception, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(read_body.__kwdefaults__, "seconds", 0.2)
    host, port = air.url.removeprefix("http://").split("/")[0].split(":")
    head = (
        "POST /contexture/notify/air HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t0ken\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )

    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive" in answer
    assert air.entries() == []
