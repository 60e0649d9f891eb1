"""The registry over HTTP: faults, the test's side of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from builders.registry import codelist, codelists, urn
from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.registry import RemoteRegistry, TestRegistry

EVERYTHING = "/sdmx/v2/structure/*/*/*/*"


@pytest.fixture(scope="module")
def running() -> Iterator[TestRegistry]:
    with TestRegistry() as registry:
        yield registry


@pytest.fixture
def registry(running: TestRegistry) -> Iterator[TestRegistry]:
    running.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    yield running
    running.faults.clear()
    running.store.clear()


@pytest.fixture
def client(registry: TestRegistry) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=registry.url, trust_env=False, timeout=5) as client:
        yield client


def test_a_submission_over_http_is_seen_by_a_query(registry: TestRegistry, client: httpx.Client):
    done = client.post(
        "/ws/secure/sdmxapi/rest",
        content=codelists(codelist("CL_C")),
        headers={"Action": "Append", "Content-Type": "application/xml"},
        auth=("root", "password"),
    )
    assert done.status_code == 200
    assert urn("CL_C").encode() in done.content
    assert client.get(EVERYTHING).text.count("<str:Codelist ") == 3
    assert [transaction.id for transaction in registry.store.transactions] == [1, 2]
    assert [request.method for request in registry.requests[-2:]] == ["POST", "GET"]


def test_a_304_has_no_body(client: httpx.Client):
    seen = client.get(EVERYTHING).headers["last-modified"]
    answer = client.get(EVERYTHING, headers={"If-Modified-Since": seen})
    assert (answer.status_code, answer.content) == (304, b"")


def test_the_second_request_fails_with_a_status(registry: TestRegistry, client: httpx.Client):
    registry.faults.fail(nth=2, status=500)
    assert [client.get(EVERYTHING).status_code for _ in range(3)] == [200, 500, 200]


def test_an_answer_is_empty_or_half_and_well_formed(registry: TestRegistry, client: httpx.Client):
    registry.faults.empty(path="/sdmx/v2")
    registry.faults.half(nth=2, path="/sdmx/v2")
    answers = [client.get(EVERYTHING) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert [answer.text.count("<str:Codelist ") for answer in answers] == [0, 1, 2]


def test_a_dropped_connection_gives_no_answer(registry: TestRegistry, client: httpx.Client):
    registry.faults.drop()
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(EVERYTHING)
    assert client.get(EVERYTHING).status_code == 200


def test_a_truncated_body_is_noticed(registry: TestRegistry, client: httpx.Client):
    registry.faults.truncate()
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
        client.get(EVERYTHING)


def test_a_web_server_without_the_registry_answers_with_a_page(registry: TestRegistry, client: httpx.Client):
    registry.faults.page()
    answer = client.get(EVERYTHING)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html")
    assert b"sdmx" not in answer.content


def test_a_late_answer_comes_late(registry: TestRegistry, client: httpx.Client):
    registry.faults.delay(0.2)
    begun = time.monotonic()
    assert client.get(EVERYTHING).status_code == 200
    assert time.monotonic() - begun >= 0.2


@pytest.mark.slow
def test_another_process_fills_and_disturbs_it(registry: TestRegistry, client: httpx.Client):
    remote = RemoteRegistry(registry.url)
    assert remote.submit(codelists(codelist("CL_C"))) == {
        "transaction": 2,
        "added": [urn("CL_C")],
        "modified": [],
        "deleted": [],
    }
    assert remote.delete([urn("CL_A")])["deleted"] == [urn("CL_A")]
    assert remote.stats()["structures"] == 2
    remote.set_faults({"kind": "status", "status": 503, "times": None})
    assert client.get(EVERYTHING).status_code == 503
    remote.clear_faults()
    assert client.get(EVERYTHING).status_code == 200
    with pytest.raises(RetriableError, match="did not do faults"):
        remote.set_faults({"kind": "earthquake"})


def test_a_plain_service_is_filled_by_its_test_alone():
    with TestRegistry("plain") as registry:
        RemoteRegistry(registry.url).submit(codelists(codelist()))
        with httpx.Client(base_url=registry.url, trust_env=False, timeout=5) as client:
            assert client.get("/rest/codelist/X/CL_A").text.count("<str:Codelist ") == 1
            assert client.get("/ws/fusion/info/product").status_code == 404


def test_a_taken_port_is_reported(registry: TestRegistry):
    port = int(registry.url.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match="is taken"):
        TestRegistry(port=port).start()
