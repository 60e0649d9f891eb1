"""Data registrations over HTTP: SDMX-REST 2.1, doc/registration.md of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx
import pytest

from builders.registrations import as_json, registration, response, submission, urn
from builders.registries import AT_ONCE, EDI, FUSION_JSON, JSON_2_0, ML_2_1, answering, connection
from builders.registry import SEX, SEX_AND_FLOW
from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError
from contexture.sources.sdmx import split
from contexture.sources.sdmx.registry import (
    FusionRegistry,
    NotExpressible,
    Reply,
    SdmxRegistry,
    StructureQuery,
    open_registry,
)
from contexture_sandbox.registry import TestRegistry

ML_3_0 = "application/vnd.sdmx.structure+xml;version=3.0.0"
ONE, TWO = urn("exr-1"), urn("exr-2")
ALL = "/sdmx/v2/registration/provider/*/*"


@pytest.fixture(scope="module")
def running() -> Iterator[TestRegistry]:
    with TestRegistry() as server:
        yield server


@pytest.fixture
def server(running: TestRegistry) -> Iterator[TestRegistry]:
    running.submit(SEX_AND_FLOW)
    yield running
    running.faults.clear()
    running.store.clear()
    running.feed_registrations(listed=False)


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "reply"


def opened(server: TestRegistry, *, registrations: bool = True, base: str = "") -> FusionRegistry | SdmxRegistry:
    return open_registry(connection(server.url + base), budget=AT_ONCE, registrations=registrations)


def registrations_in(registry: FusionRegistry | SdmxRegistry, media_type: str = ML_2_1) -> list[str]:
    return sorted(each for each in registry.list_structures(media_type).urns if "Registration=" in each)


def urns_in(reply: object) -> list[str | None]:
    assert isinstance(reply, Reply), reply
    return [artefact.urn for artefact in split(BytesIO(reply.path.read_bytes()), reply.media_type)]


def test_they_are_listed_beside_structures_and_read_by_id(server: TestRegistry, into: Path):
    server.submit(submission(registration("exr-1"), registration("exr-2")))
    with opened(server) as registry:
        listed = registry.list_structures(ML_2_1)
        assert SEX in listed.urns
        assert registrations_in(registry) == [ONE, TWO]
        # Structures' time of the last change does not cover them.
        assert listed.last_modified is None
        reply = registry.read_one(ONE, ML_2_1, into)
        assert urns_in(reply) == [ONE]
        assert isinstance(reply, Reply)
        assert reply.media_type == "application/vnd.sdmx.registry+xml;version=2.1"
    assert "/sdmx/v2/registration/id/exr-1" in [request.path for request in server.requests]


def test_many_of_one_agency_are_read_by_the_agency_of_their_agreements(server: TestRegistry, into: Path):
    server.submit(submission(*(registration(f"exr-{number}") for number in range(5)), registration("x", agency="BIS")))
    with opened(server) as registry:
        urns = [urn(f"exr-{number}") for number in range(5)]
        registry.list_structures(ML_2_1)
        assert registry.queries(urns) == (StructureQuery("Registration", "ECB"),)
        assert sorted(map(str, urns_in(registry.read(StructureQuery("Registration", "ECB"), ML_2_1, into)))) == urns
    assert "/sdmx/v2/registration/provisionagreement/ECB/*/*" in [request.path for request in server.requests]


def test_a_plain_registry_has_them_too(into: Path):
    with TestRegistry("plain") as server:
        server.submit(SEX_AND_FLOW)
        server.submit(submission(registration("exr-1")))
        with opened(server, base="/rest") as registry:
            assert registrations_in(registry) == [ONE]
            assert urns_in(registry.read_one(ONE, ML_2_1, into)) == [ONE]


def test_without_being_wanted_they_are_neither_listed_nor_in_the_log(server: TestRegistry):
    server.feed_registrations(listed=True)
    number = server.submit(submission(registration("exr-1"))).id
    with opened(server, registrations=False) as registry:
        assert registrations_in(registry) == []
        [transaction] = registry.transactions(number - 1).transactions
        assert (transaction.changed, transaction.added, transaction.hides_registrations) == ((), (), False)


def test_the_log_names_those_that_its_feed_lists(server: TestRegistry):
    server.feed_registrations(listed=True)
    first = server.submit(submission(registration("exr-1"))).id
    server.delete([ONE])
    with opened(server) as registry:
        added, deleted = registry.transactions(first - 1).transactions
        assert (added.changed, added.added, added.hides_registrations) == ((ONE,), (ONE,), False)
        assert (deleted.deleted, deleted.hides_registrations) == ((ONE,), False)


def test_the_log_shows_that_others_happened(server: TestRegistry):
    first = server.submit(submission(registration("exr-1"))).id
    server.store.clock.advance(600)
    with opened(server) as registry:
        log = registry.transactions(first - 1)
        [transaction] = log.transactions
        assert (transaction.id, transaction.changed, transaction.hides_registrations) == (first, (), True)
        assert log.gap_until is None


def test_a_registry_may_hold_none(server: TestRegistry, into: Path):
    with opened(server) as registry:
        assert registrations_in(registry) == []
        assert registry.read_one(ONE, ML_2_1, into) is None


def test_one_that_is_listed_is_never_taken_for_gone(server: TestRegistry, into: Path):
    server.submit(submission(registration("exr-1")))
    server.faults.fail(status=404, path="/sdmx/v2/registration/id", times=None)
    with opened(server) as registry, pytest.raises(RegistryUnavailableError, match=r"lists .*exr-1"):
        registry.read_one(ONE, ML_2_1, into)


@pytest.mark.parametrize("fault", ["fail", "drop", "truncate"])
def test_a_list_that_always_fails_is_never_taken_for_none(server: TestRegistry, fault: str):
    server.submit(submission(registration("exr-1")))
    getattr(server.faults, fault)(path="/sdmx/v2/registration", times=None)
    with opened(server) as registry, pytest.raises(RegistryUnavailableError):
        registry.list_structures(ML_2_1)


def test_a_format_without_registrations_leaves_them_listed(server: TestRegistry, into: Path):
    server.submit(submission(registration("exr-1")))
    with opened(server) as registry:
        for media_type in (EDI, ML_3_0, JSON_2_0):
            assert registrations_in(registry, ML_2_1) == [ONE]
            assert isinstance(registry.read_one(ONE, EDI, into), NotExpressible), media_type


@pytest.mark.parametrize(
    ("media_type", "message"),
    [
        (ML_3_0, submission(registration("exr-1", version="3.0"), version="3.0")),
        (FUSION_JSON, as_json("exr-1", fusion=True)),
        (JSON_2_0, as_json("exr-1")),
    ],
)
def test_they_are_read_in_the_format_of_structures(server: TestRegistry, into: Path, media_type: str, message: bytes):
    server.submit(message)
    with opened(server) as registry:
        assert registrations_in(registry, media_type) == [ONE]
        reply = registry.read_one(ONE, media_type, into)
    assert urns_in(reply) == [ONE]


def served(answer: httpx.Response) -> FusionRegistry | SdmxRegistry:
    """A registry whose response to the query for all registrations is this one."""
    paths = {
        "/ws/fusion/info/product": httpx.Response(200, json={"Version": "12.4.2"}),
        "/ws/registry/tx/searchTransactions": httpx.Response(200, json=[]),
        "/sdmx/v2/structure/*/*/*/*": httpx.Response(200, content=SEX_AND_FLOW, headers={"content-type": ML_2_1}),
        ALL: answer,
    }
    return open_registry(connection("http://registry"), budget=AT_ONCE, transport=answering(paths), registrations=True)


def test_a_message_without_any_is_accepted_when_its_status_is_success():
    with served(httpx.Response(200, content=response())) as registry:
        assert registrations_in(registry) == []


@pytest.mark.parametrize(
    "body",
    [
        response(status='<reg:StatusMessage status="Failure"/>'),
        response(registration("exr-1"), status='<reg:StatusMessage status="Warning"/>'),
        response()[:-40],
        SEX_AND_FLOW[:60],
        b"",
    ],
)
def test_a_message_that_is_not_whole_or_reports_a_failure_is_incomplete(body: bytes):
    with served(httpx.Response(200, content=body)) as registry, pytest.raises(RegistryUnavailableError) as raised:
        registry.list_structures(ML_2_1)
    assert isinstance(raised.value, IncompleteReplyError | RegistryUnavailableError)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, html="<html>not here</html>"),
        httpx.Response(400, text="no such resource"),
        httpx.Response(406),
        httpx.Response(501),
    ],
)
def test_a_registry_without_the_resource_is_a_mistake_of_the_publication(answer: httpx.Response):
    with served(answer) as registry, pytest.raises(ConfigurationError, match="does not offer data registrations"):
        registry.list_structures(ML_2_1)


def test_the_first_version_of_the_interface_has_none():
    with TestRegistry(version="10.9") as server:
        server.submit(SEX_AND_FLOW)
        with opened(server) as registry, pytest.raises(ConfigurationError, match="SDMX-REST 1"):
            registry.list_structures(ML_2_1)
