"""The broker over HTTP: faults, churn, the test's side of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.context_broker import (
    ConcurrentWriter,
    Loaded,
    RemoteBroker,
    SeedEntity,
    TestBroker,
    seed_entities,
)


@pytest.fixture(scope="module")
def running() -> Iterator[TestBroker]:
    with TestBroker() as broker:
        yield broker


@pytest.fixture
def broker(running: TestBroker) -> Iterator[TestBroker]:
    yield running
    running.faults.clear()
    running.store.clear()


@pytest.fixture
def client(broker: TestBroker) -> Iterator[httpx.Client]:
    headers = {"Fiware-Service": "vehicles", "Fiware-ServicePath": "/#"}
    with httpx.Client(base_url=broker.url, trust_env=False, headers=headers, timeout=5) as client:
        yield client


def test_the_second_request_fails_with_a_status(broker: TestBroker, client: httpx.Client) -> None:
    broker.faults.fail(nth=2, status=503)
    assert [client.get("/v2/entities").status_code for _ in range(3)] == [200, 503, 200]


def test_a_dropped_connection_gives_no_answer(broker: TestBroker, client: httpx.Client) -> None:
    broker.faults.drop()
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/v2/entities")
    assert client.get("/v2/entities").status_code == 200


def test_a_truncated_body_is_noticed(broker: TestBroker, client: httpx.Client) -> None:
    broker.load(seed_entities(5))
    broker.faults.truncate(path="/v2/entities")
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
        client.get("/v2/entities")


def test_an_answer_can_be_late(broker: TestBroker, client: httpx.Client) -> None:
    broker.faults.delay(0.15)
    start = time.monotonic()
    client.get("/v2/entities")
    assert time.monotonic() - start >= 0.15


def test_without_its_database_a_broker_looks_empty_but_its_probe_fails(
    broker: TestBroker, client: httpx.Client
) -> None:
    broker.load(seed_entities(5))
    broker.faults.database_gone = True
    assert client.get("/v2/entities?options=count").json() == []
    assert client.get("/v2/subscriptions?limit=1").status_code == 500
    assert client.post("/v2/entities", json={"id": "a", "type": "T"}).status_code == 500
    assert client.get("/version").status_code == 200
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/v2/entities/car1")


@pytest.mark.slow
def test_the_other_process_loads_disturbs_and_asks(broker: TestBroker, client: httpx.Client) -> None:
    remote = RemoteBroker(broker.url)
    assert remote.load(seed_entities(20)) == Loaded(created=20)
    remote.set_faults(faults=[{"kind": "status", "status": 429, "headers": {"retry-after": "1"}}])
    answer = client.get("/v2/entities")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    remote.set_faults(database_gone=True)
    assert remote.stats()["database_gone"] is True
    remote.clear_faults()
    assert remote.stats()["entities"] == {"city": 5, "vehicles": 15}


def test_a_fault_that_is_not_known_is_refused(broker: TestBroker) -> None:
    with pytest.raises(RetriableError, match="400"):
        RemoteBroker(broker.url).set_faults(nonsense=True)
    assert httpx.get(f"{broker.url}/sandbox/nonsense", trust_env=False).status_code == 404


def test_requests_are_remembered_without_headers(broker: TestBroker, client: httpx.Client) -> None:
    client.get("/v2/entities", params={"limit": "7"}, headers={"X-Auth-Token": "secret"})
    last = broker.requests[-1]
    assert (last.method, last.path, last.parameters) == ("GET", "/v2/entities", {"limit": "7"})
    assert "secret" not in repr(last)


def test_a_port_that_is_taken_is_named(broker: TestBroker) -> None:
    port = int(broker.url.rsplit(":", 1)[1])
    with pytest.raises(ConfigurationError, match=f"port {port} is taken"):
        TestBroker(port).start()


def test_an_encoded_slash_belongs_to_the_id(broker: TestBroker, client: httpx.Client) -> None:
    broker.load([SeedEntity("vehicles", "/4wheels", {"id": "http://a/b", "type": "T"})])
    assert client.get("/v2/entities/http%3A%2F%2Fa%2Fb").json() == {"id": "http://a/b", "type": "T"}


def _fill(broker: TestBroker, *, per_millisecond: int = 3) -> set[str]:
    """1,500 entities, written in order at a steady pace some time ago."""
    ids = [f"e{number:04d}" for number in range(1500)]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number, one in enumerate(ids):
        at = start + timedelta(milliseconds=number // per_millisecond, microseconds=1 + number % per_millisecond)
        broker.load([SeedEntity("paging", "/p", {"id": one, "type": "T", "n": {"value": 1}}, at, at)])
    return set(ids)


def _offset_walk(client: httpx.Client, order: str) -> list[str]:
    found: list[str] = []
    while True:
        params = {"limit": "50", "offset": str(len(found)), "orderBy": order, "attrs": "dateCreated"}
        page = client.get("/v2/entities", params=params, headers={"Fiware-Service": "paging"}).json()
        found += [entity["id"] for entity in page]
        if len(page) < 50:
            return found


def _keyset_walk(client: httpx.Client, name: str) -> list[str]:
    found: list[str] = []
    cursor, offset = "1970-01-01T00:00:00.000Z", 0
    while True:
        params = {
            "limit": "50", "offset": str(offset), "attrs": name, "orderBy": f"{name},id,type", "q": f"{name}>={cursor}",
        }  # fmt: skip
        page = client.get("/v2/entities", params=params, headers={"Fiware-Service": "paging"}).json()
        found += [entity["id"] for entity in page]
        if len(page) < 50:
            return found
        last = page[-1][name]["value"]
        cursor, offset = (cursor, offset + 50) if last == cursor else (last, 0)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["dateCreated", "dateModified,id"])
def test_offset_paging_misses_entities_while_others_write(broker: TestBroker, client: httpx.Client, order: str) -> None:
    ids = _fill(broker)
    broker.faults.after_page = churn = ConcurrentWriter(broker.store, "paging", updates=5, deletes=1, inserts=1)
    found = _offset_walk(client, order)
    assert ids - churn.deleted - set(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dateCreated", "dateModified"])
def test_keyset_paging_misses_none(broker: TestBroker, client: httpx.Client, name: str) -> None:
    ids = _fill(broker)
    broker.faults.after_page = churn = ConcurrentWriter(broker.store, "paging", updates=5, deletes=1, inserts=1)
    found = _keyset_walk(client, name)
    assert len(churn.deleted) > 10
    assert ids - churn.deleted - set(found) == set()


@pytest.mark.slow
def test_keyset_paging_also_misses_when_one_millisecond_holds_many_pages(
    broker: TestBroker, client: httpx.Client
) -> None:
    # Inside a millisecond only the offset can step, with all its weakness: pages must be larger than what a broker
    # writes in a millisecond.
    ids = _fill(broker, per_millisecond=900)
    broker.faults.after_page = churn = ConcurrentWriter(broker.store, "paging", updates=5, deletes=1, inserts=1)
    found = _keyset_walk(client, "dateModified")
    assert ids - churn.deleted - set(found)
