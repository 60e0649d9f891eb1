"""When "nothing of it in this format" is believed: another structure comes, and this one does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import structures
from builders.registries import AT_ONCE, JSON_2_0, connection
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from contexture.sources.sdmx.registry import FusionRegistry, NotExpressible, Reply, StructureQuery, open_registry
from contexture.sources.sdmx.registry.rest import FormatSupport
from contexture_sandbox.registry import TestRegistry

SEX_JSON = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()
CODELIST, FLOW = StructureQuery("Codelist", "X", "A", "1.0"), StructureQuery("Dataflow", "X", "B", "1.0")


@pytest.fixture
def server() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        running.submit(SEX_AND_FLOW)
        running.submit(codelists(structures.CODELIST_2_1), SEX_JSON)
        yield running


def test_a_kind_that_never_came_is_remembered_until_one_comes():
    seen = FormatSupport()
    seen.record_success(FLOW, JSON_2_0)
    seen.record_unsupported(CODELIST, JSON_2_0)
    assert seen.is_unsupported(CODELIST, JSON_2_0)
    assert not seen.is_unsupported(FLOW, JSON_2_0)
    seen.record_success(CODELIST, JSON_2_0)
    assert not seen.is_unsupported(CODELIST, JSON_2_0)


def test_a_kind_of_which_one_came_may_always_come():
    seen = FormatSupport()
    seen.record_success(CODELIST, JSON_2_0)
    seen.record_unsupported(StructureQuery("Codelist", "X", "OTHER", "1.0"), JSON_2_0)
    assert not seen.is_unsupported(CODELIST, JSON_2_0)


def test_another_structure_is_one_of_the_same_kind_where_there_is_one():
    seen = FormatSupport()
    assert seen.another(CODELIST, JSON_2_0) is None
    seen.record_success(FLOW, JSON_2_0)
    assert seen.another(CODELIST, JSON_2_0) == FLOW
    other = StructureQuery("Codelist", "X", "OTHER", "1.0")
    seen.record_success(other, JSON_2_0)
    assert seen.another(CODELIST, JSON_2_0) == other
    seen.record_failure(other, JSON_2_0)
    assert seen.another(CODELIST, JSON_2_0) == FLOW


def opened(server: TestRegistry) -> FusionRegistry:
    found = open_registry(connection(server.url), budget=AT_ONCE)
    assert isinstance(found, FusionRegistry)
    return found


def test_answers_that_lose_what_they_hold_are_not_taken_for_a_format_without_the_kind(
    server: TestRegistry, tmp_path: Path
):
    """The first, third and fourth answers about it are empty; the list between them is right."""
    with opened(server) as registry:
        server.faults.empty(times=1, path="/sdmx/v2")
        server.faults.empty(nth=3, times=2, path="/sdmx/v2")
        assert isinstance(registry.read_one(SEX, JSON_2_0, tmp_path / "reply"), Reply)


def test_the_second_structure_of_such_a_kind_takes_two_questions(server: TestRegistry, tmp_path: Path):
    server.submit(structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1.replace("EXR", "OTHER"))).encode())
    other = EXR.replace("EXR", "OTHER")
    with opened(server) as registry:
        assert isinstance(registry.read_one(EXR, JSON_2_0, tmp_path / "reply"), NotExpressible)
        before = len(server.requests)
        assert isinstance(registry.read_one(other, JSON_2_0, tmp_path / "reply"), NotExpressible)
        assert len(server.requests) - before == 2


def test_one_that_is_gone_is_no_witness(server: TestRegistry, tmp_path: Path):
    server.submit(codelists(codelist()))
    with opened(server) as registry:
        assert isinstance(registry.read_one(SEX, JSON_2_0, tmp_path / "reply"), Reply)
        server.delete([SEX])
        assert isinstance(registry.read_one(urn(), JSON_2_0, tmp_path / "reply"), NotExpressible)
