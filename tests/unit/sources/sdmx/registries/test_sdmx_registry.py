"""Any other registry over HTTP: the test registry's plain face (reference, 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from builders import structures
from builders.registries import AT_ONCE, EDI, ML_2_1, connection
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from contexture.errors import DefectError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError
from contexture.sources.sdmx import split
from contexture.sources.sdmx.registry import NotExpressible, Reply, SdmxRegistry, StructureQuery, open_registry
from contexture_sandbox.registry import TestRegistry

ML_3_0 = "application/vnd.sdmx.structure+xml;version=3.0.0"


@pytest.fixture(scope="module")
def running() -> Iterator[TestRegistry]:
    with TestRegistry("plain") as server:
        yield server


@pytest.fixture
def server(running: TestRegistry) -> Iterator[TestRegistry]:
    running.submit(SEX_AND_FLOW)
    yield running
    running.faults.clear()
    running.store.clear()


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "reply"


def opened(server: TestRegistry, base: str = "/rest", **settings: object) -> SdmxRegistry:
    found = open_registry(connection(server.url + base, **settings), budget=AT_ONCE)
    assert isinstance(found, SdmxRegistry)
    return found


def urns_in(reply: object) -> list[str | None]:
    assert isinstance(reply, Reply), reply
    return [artefact.urn for artefact in split(BytesIO(reply.path.read_bytes()), reply.media_type)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "settings", "product", "path"),
    [
        ("/rest", {}, "SDMX-REST 2", "/rest/v2/structure/codelist/SDMX/CL_SEX/2.1"),
        ("/rest/v2", {}, "SDMX-REST 2", "/rest/v2/structure/codelist/SDMX/CL_SEX/2.1"),
        ("/rest/v1", {}, "SDMX-REST 1", "/rest/v1/codelist/SDMX/CL_SEX/2.1"),
        ("/rest", {"api": "v1"}, "SDMX-REST 1", "/rest/codelist/SDMX/CL_SEX/2.1"),
        ("/rest", {"flavour": "generic", "api": "v2"}, "SDMX-REST 2", "/rest/v2/structure/codelist/SDMX/CL_SEX/2.1"),
    ],
)
def test_the_version_of_its_interface_is_found_unless_it_is_said(
    server: TestRegistry, into: Path, base: str, settings: dict[str, object], product: str, path: str
):
    with opened(server, base, **settings) as registry:
        assert (registry.flavour, registry.product) == ("generic", product)
        assert (registry.has_log, registry.has_history) == (False, False)
        assert sorted(registry.list_structures(ML_2_1).urns) == sorted([SEX, EXR])
        assert urns_in(registry.read_one(SEX, ML_2_1, into)) == [SEX]
        registry.probe()
    assert path in [request.path for request in server.requests]


def test_what_another_format_lists_is_held_too(server: TestRegistry):
    """What a format can't express is held all the same."""
    flow = structures.ml("3.0", ("Dataflows", structures.DATAFLOW_3)).encode()
    server.submit(flow)
    with opened(server) as registry:
        assert sorted(registry.list_structures(ML_2_1).urns) == sorted([SEX, EXR, EXR.replace("(1.0)", "(1.0.0)")])


def test_a_structure_of_another_format_is_not_expressible(server: TestRegistry, into: Path):
    server.submit(structures.ml("3.0", ("Dataflows", structures.DATAFLOW_3)).encode())
    with opened(server) as registry:
        found = registry.read_one(EXR.replace("(1.0)", "(1.0.0)"), ML_2_1, into)
        assert isinstance(found, NotExpressible)
        assert registry.read_one(urn("CL_NEVER"), ML_2_1, into) is None
        assert isinstance(registry.read_one(SEX, EDI, into), NotExpressible)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["empty", "truncate", "drop", "fail"])
def test_a_failed_answer_is_never_nothing_there(server: TestRegistry, into: Path, fault: str):
    with opened(server) as registry:
        getattr(server.faults, fault)(times=None)
        with pytest.raises(RegistryUnavailableError):
            registry.list_structures(ML_2_1)
        with pytest.raises(RegistryUnavailableError):
            registry.read_one(SEX, ML_2_1, into)


def test_a_list_cut_in_half_is_seen_by_asking_for_what_it_lacks(server: TestRegistry, into: Path):
    with opened(server) as registry:
        server.faults.half(nth=1, times=None, path="/rest/v2/structure/*/*")
        assert len(registry.list_structures(ML_2_1).urns) == 1
        assert urns_in(registry.read_one(SEX, ML_2_1, into)) == [SEX]
        assert urns_in(registry.read_one(EXR, ML_2_1, into)) == [EXR]


def test_the_page_of_a_web_server_says_nothing_about_structures(server: TestRegistry, into: Path):
    with opened(server) as registry:
        server.faults.page()
        with pytest.raises(RegistryUnavailableError, match="no longer responds to structure queries"):
            registry.read_one(SEX, ML_2_1, into)
        with pytest.raises(RegistryUnavailableError):
            registry.list_structures(ML_2_1)


def test_it_returns_no_time_of_change(server: TestRegistry, into: Path):
    """Some services send no Last-Modified and no ETag: nothing can be asked conditionally."""
    with opened(server) as registry:
        assert registry.list_structures(ML_2_1).last_modified is None
        reply = registry.read(StructureQuery("Codelist"), ML_2_1, into)
        assert isinstance(reply, Reply)
        assert reply.last_modified is None


def test_all_of_an_agency_and_kind_that_is_gone_is_none(server: TestRegistry, into: Path):
    with opened(server) as registry:
        assert registry.read(StructureQuery("Codelist", "ABSENT"), ML_2_1, into) is None


def test_it_is_slow_and_then_answers(server: TestRegistry):
    server.submit(codelists(codelist()))
    with opened(server) as registry:
        server.faults.delay(0.2, path="/rest/v2/structure/*")
        assert urn() in registry.list_structures(ML_2_1).urns


@pytest.mark.slow
def test_it_takes_too_long(server: TestRegistry):
    with opened(server, timeout_seconds=0.2) as registry:
        server.faults.delay(1.0, times=None)
        with pytest.raises(RegistryUnavailableError, match="did not respond in time"):
            registry.list_structures(ML_2_1)


def test_it_has_no_log(server: TestRegistry):
    with opened(server) as registry, pytest.raises(DefectError):
        registry.transactions(None)


def test_an_empty_registry_is_opened_and_not_believed():
    refused = pytest.raises(IncompleteReplyError, match="lists no structure at all")
    with TestRegistry("plain") as server, opened(server) as registry, refused:
        registry.list_structures(ML_2_1)
