"""A Fusion (Metadata) Registry over HTTP: the test registry's face of one (reference, 2.1 and 2.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest

from builders import structures
from builders.registries import AT_ONCE, FUSION_JSON, JSON_2_0, ML_2_1, START, connection, summaries
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from contexture.errors import ConfigurationError
from contexture.sources.http.errors import IncompleteReplyError, RegistryUnavailableError
from contexture.sources.sdmx import split
from contexture.sources.sdmx.registry import (
    FusionRegistry,
    LogPeriod,
    LogResetError,
    NotExpressible,
    NotModified,
    Reply,
    StructureQuery,
    open_registry,
)
from contexture_sandbox.registry import TestRegistry

FLOWS = "/sdmx/v2/structure/dataflow"


@pytest.fixture(scope="module")
def running() -> Iterator[TestRegistry]:
    with TestRegistry() as server:
        yield server


@pytest.fixture
def server(running: TestRegistry) -> Iterator[TestRegistry]:
    running.store.clock.freeze(START)
    yield running
    running.faults.clear()
    running.store.clear()
    running.restrict([])
    running.store.clock.resume()


@pytest.fixture
def registry(server: TestRegistry) -> Iterator[FusionRegistry]:
    with open_registry(connection(server.url), budget=AT_ONCE) as found:
        assert isinstance(found, FusionRegistry)
        yield found


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "reply"


def urns_in(reply: object) -> list[str | None]:
    assert isinstance(reply, Reply), reply
    return [artefact.urn for artefact in split(BytesIO(reply.path.read_bytes()), reply.media_type)]


def test_it_is_known_by_its_product(registry: FusionRegistry, server: TestRegistry):
    assert (registry.flavour, registry.product, registry.address) == ("fmr", "FMR 12.4.2", server.url)
    assert (registry.has_log, registry.has_history) == (True, True)
    registry.probe()


@pytest.mark.parametrize("suffix", ["/", "/sdmx/v2", "/ws/public/sdmxapi/rest"])
def test_the_address_of_its_structure_queries_leads_to_it_too(server: TestRegistry, suffix: str):
    with open_registry(connection(server.url + suffix), budget=AT_ONCE) as found:
        assert (found.flavour, found.address) == ("fmr", server.url)


def test_everything_held_is_listed_in_every_version(registry: FusionRegistry, server: TestRegistry):
    server.submit(SEX_AND_FLOW)
    server.submit(codelists(codelist(), codelist("CL_A", "1.9")))
    assert sorted(registry.list_structures().urns) == sorted([SEX, EXR, urn(), urn("CL_A", "1.9")])


@pytest.mark.parametrize("fault", ["empty", "fail", "drop", "truncate"])
def test_a_list_that_failed_is_asked_for_again(registry: FusionRegistry, server: TestRegistry, fault: str):
    server.submit(SEX_AND_FLOW)
    getattr(server.faults, fault)(path="/sdmx/v2")
    assert sorted(registry.list_structures().urns) == sorted([SEX, EXR])


@pytest.mark.parametrize("fault", ["empty", "fail", "drop", "truncate"])
def test_a_list_that_always_fails_is_never_taken_for_nothing(
    registry: FusionRegistry, server: TestRegistry, fault: str
):
    server.submit(SEX_AND_FLOW)
    getattr(server.faults, fault)(path="/sdmx/v2", times=None)
    with pytest.raises(RegistryUnavailableError):
        registry.list_structures()


def test_a_registry_that_says_it_holds_nothing_is_not_believed(registry: FusionRegistry):
    with pytest.raises(IncompleteReplyError, match="lists no structure at all"):
        registry.list_structures()


def test_structures_come_by_kind_and_agency_in_the_format_asked_for(
    registry: FusionRegistry, server: TestRegistry, into: Path
):
    server.submit(codelists(*(codelist(f"CL_{number}") for number in range(5))))
    server.submit(SEX_AND_FLOW)
    queries = registry.queries(registry.list_structures().urns)
    assert [str(query) for query in queries] == [
        "Codelist=SDMX:CL_SEX(2.1)",
        "Codelist=X:*(*)",
        "Dataflow=ECB:EXR(1.0)",
    ]
    assert [len(urns_in(registry.read(query, ML_2_1, into))) for query in queries] == [1, 5, 1]
    assert len(server.requests) >= 4


def test_a_reply_contains_the_time_of_its_last_change(registry: FusionRegistry, server: TestRegistry, into: Path):
    server.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    reply = registry.read(StructureQuery("Codelist"), ML_2_1, into)
    assert isinstance(reply, Reply)
    assert reply.last_modified == "Sun, 01 Nov 2026 12:00:00 GMT"
    again = registry.read(StructureQuery("Codelist"), ML_2_1, into, unless_modified_since=reply.last_modified)
    assert again == NotModified()
    # A deletion resets the timestamps of all structures: what comes then says nothing about what changed.
    server.store.clock.advance(60)
    server.delete([urn("CL_B")])
    again = registry.read(StructureQuery("Codelist"), ML_2_1, into, unless_modified_since=reply.last_modified)
    assert urns_in(again) == [urn("CL_A")]


def test_whether_anything_changed_is_asked_without_reading_it(registry: FusionRegistry, server: TestRegistry):
    server.submit(SEX_AND_FLOW)
    held = registry.list_structures()
    assert held.last_modified is not None
    assert registry.unchanged_since(held.last_modified)
    server.store.clock.advance(60)
    server.submit(codelists(codelist()))
    assert not registry.unchanged_since(held.last_modified)


def test_a_format_that_the_registry_does_not_know_gives_nothing(
    registry: FusionRegistry, server: TestRegistry, into: Path
):
    server.submit(SEX_AND_FLOW)
    expected = NotExpressible("the registry does not return it as application/vnd.xlsx (406)")
    assert registry.read(StructureQuery("Codelist"), "application/vnd.xlsx", into) == expected
    assert registry.read_one(SEX, "application/vnd.xlsx", into) == expected


def test_an_inexpressible_structure_is_distinguished_from_a_deleted_one(
    registry: FusionRegistry, server: TestRegistry, into: Path
):
    """Checklist, 5: a structure whose type the format cannot express yields no event."""
    server.submit(SEX_AND_FLOW)
    found = registry.read_one(SEX, JSON_2_0, into)
    assert found == NotExpressible(f"the registry lists it, and returns nothing of it as {JSON_2_0}")
    assert registry.read_one(urn("CL_NEVER"), ML_2_1, into) is None


def test_an_empty_answer_is_not_believed_once(registry: FusionRegistry, server: TestRegistry, into: Path):
    server.submit(SEX_AND_FLOW)
    server.faults.empty(path=FLOWS)
    assert urns_in(registry.read_one(EXR, ML_2_1, into)) == [EXR]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["empty", "truncate", "drop", "fail"])
def test_no_failed_answer_says_that_a_structure_is_gone(
    registry: FusionRegistry, server: TestRegistry, into: Path, fault: str
):
    server.submit(SEX_AND_FLOW)
    getattr(server.faults, fault)(path="/sdmx/v2", times=None)
    with pytest.raises(RegistryUnavailableError):
        registry.read_one(EXR, ML_2_1, into)


def test_a_server_without_the_registry_says_nothing_about_structures(
    registry: FusionRegistry, server: TestRegistry, into: Path
):
    """A web server answers 404 for an application that is being installed."""
    server.submit(SEX_AND_FLOW)
    server.faults.page()
    with pytest.raises(RegistryUnavailableError, match="does not report which product it is"):
        registry.read_one(EXR, ML_2_1, into)


def test_a_moment_of_the_past_has_its_content(registry: FusionRegistry, server: TestRegistry, into: Path):
    before = server.submit(codelists(codelist("CL_A", "1.0", "OLD")))
    server.store.clock.advance(0.5)
    server.submit(codelists(codelist("CL_A", "1.0", "NEW")))
    server.store.clock.advance(60)
    server.delete([urn()])
    moment = START + timedelta(milliseconds=before.at_ms % 1000)
    assert isinstance(registry.read_one(urn(), ML_2_1, into, as_of=moment), Reply)
    assert b'"OLD"' in into.read_bytes()
    assert registry.read_one(urn(), ML_2_1, into, as_of=START + timedelta(seconds=61)) is None
    assert registry.read_one(urn(), ML_2_1, into, as_of=START - timedelta(seconds=1)) is None


def test_transactions_come_after_the_one_that_is_known(registry: FusionRegistry, server: TestRegistry):
    server.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    server.submit(codelists(codelist("CL_A", "1.0", "M"), codelist("CL_C")), action="Merge")
    server.delete([urn("CL_B")])
    server.store.clock.advance(600)
    assert registry.transactions(None).newest == 3
    log = registry.transactions(1)
    assert summaries(log.transactions) == [
        (2, "Merge", [urn("CL_C"), urn("CL_A")], []),
        (3, "Delete", [], [urn("CL_B")]),
    ]
    assert (log.newest, log.gap_until, log.transactions[0].at) == (3, None, START)
    assert registry.transactions(3).transactions == ()


def test_a_log_longer_than_one_answer_is_gone_back_to_what_is_known(registry: FusionRegistry, server: TestRegistry):
    for number in range(130):
        server.submit(codelists(codelist(f"CL_{number}")))
    server.store.clock.advance(600)
    log = registry.transactions(3)
    assert [each.id for each in log.transactions] == list(range(4, 131))


def test_what_is_older_than_the_feed_is_a_gap(registry: FusionRegistry, server: TestRegistry):
    for number in range(3):
        server.submit(codelists(codelist(f"CL_{number}")))
    server.store.clock.advance(25 * 3600)
    server.submit(codelists(codelist("CL_9")))
    server.store.clock.advance(600)
    log = registry.transactions(1)
    assert (log.gap_until, summaries(log.transactions)) == (3, [(4, "Replace", [urn("CL_9")], [])])


@pytest.mark.parametrize("path", ["/rss.xml", "/ws/registry/tx/searchTransactions"])
@pytest.mark.parametrize("fault", ["half", "empty"])
def test_half_a_log_is_never_taken_for_all_of_it(registry: FusionRegistry, server: TestRegistry, fault: str, path: str):
    for number in range(6):
        server.submit(codelists(codelist(f"CL_{number}")))
    server.store.clock.advance(600)
    getattr(server.faults, fault)(path=path, times=None)
    try:
        log = registry.transactions(1)
    except IncompleteReplyError:
        return
    covered = {each.id for each in log.transactions} | set(range(2, (log.gap_until or 1) + 1))
    assert covered == {2, 3, 4, 5, 6}


def test_a_log_that_begins_anew_stops(registry: FusionRegistry, server: TestRegistry):
    server.submit(SEX_AND_FLOW)
    with pytest.raises(LogResetError, match="once in mode full"):
        registry.transactions(500)


def test_urns_that_ever_were_and_the_history_of_one(registry: FusionRegistry, server: TestRegistry):
    server.submit(SEX_AND_FLOW)
    server.delete([SEX])
    assert registry.all_urns() == (SEX, EXR)
    assert registry.history(SEX) == (1, 2)


def test_without_credentials_only_what_is_public_is_there(server: TestRegistry, into: Path):
    server.submit(SEX_AND_FLOW)
    server.restrict([SEX])
    authorised = connection(server.url, headers={"Authorization": "Basic cm9vdDpwYXNzd29yZA=="})
    with open_registry(connection(server.url), budget=AT_ONCE) as public:
        assert public.list_structures().urns == (EXR,)
        assert public.read_one(SEX, ML_2_1, into) is None
    with open_registry(authorised, budget=AT_ONCE) as restricted:
        assert sorted(restricted.list_structures().urns) == sorted([SEX, EXR])
        assert urns_in(restricted.read_one(SEX, ML_2_1, into)) == [SEX]


def test_the_error_of_wrong_credentials_does_not_show_them(server: TestRegistry):
    server.submit(SEX_AND_FLOW)
    wrong = connection(server.url, headers={"Authorization": "Basic cm9vdDp3cm9uZw=="})
    server.restrict([SEX])
    with open_registry(wrong, budget=AT_ONCE) as found, pytest.raises(ConfigurationError) as raised:
        found.list_structures()
    assert "refuses the credentials of the connection (401)" in str(raised.value)
    assert "cm9vdDp3cm9uZw" not in str(raised.value)


def test_an_older_registry_knows_no_past(into: Path):
    with TestRegistry(version="11.25.3") as server:
        server.submit(codelists(codelist("CL_A", "1.0", "NOW")))
        with open_registry(connection(server.url), budget=AT_ONCE) as found:
            assert (found.product, found.has_history) == ("FMR 11.25.3", False)
            assert urns_in(found.read_one(urn(), ML_2_1, into, as_of=START)) == [urn()]
        assert "asOf" not in server.requests[-1].parameters


def test_a_registry_without_version_2_is_asked_by_version_1(into: Path):
    with TestRegistry(version="10.4.3") as server:
        server.submit(SEX_AND_FLOW)
        with open_registry(connection(server.url), budget=AT_ONCE) as found:
            assert (found.product, found.flavour) == ("Fusion Registry 10.4.3", "fmr")
            assert sorted(found.list_structures().urns) == sorted([SEX, EXR])
            assert urns_in(found.read(StructureQuery("Dataflow", "ECB"), ML_2_1, into)) == [EXR]
            assert urns_in(found.read_one(SEX, ML_2_1, into)) == [SEX]
        assert server.requests[-1].path == "/ws/public/sdmxapi/rest/codelist/SDMX/CL_SEX/2.1"


def test_one_structure_of_two_names_is_found_by_either(registry: FusionRegistry, server: TestRegistry, into: Path):
    """SDMX 3.0 calls a content constraint a data constraint."""
    constraint = '<str:ContentConstraint id="CC" agencyID="X" version="1.0" type="Allowed"/>'
    server.submit(structures.ml("2.1", ("Constraints", constraint)).encode())
    own = "urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=X:CC(1.0)"
    assert urns_in(registry.read_one(own.replace("Content", "Data"), ML_2_1, into)) == [own]


def test_a_kind_that_goes_by_another_name_is_found_by_its_list(
    registry: FusionRegistry, server: TestRegistry, into: Path
):
    """The URN of a geographic code list says that it is a code list."""
    geographic = '<str:GeographicCodelist id="CL_G" agencyID="X" version="1.0" geoType="GeographicCodelist"/>'
    server.submit(structures.ml("3.0", ("GeographicCodelists", geographic)).encode())
    media_type = "application/vnd.sdmx.structure+xml;version=3.0.0"
    assert urns_in(registry.read_one(urn("CL_G"), media_type, into)) == [urn("CL_G")]


def test_what_fusion_json_says_is_read_as_it_is(registry: FusionRegistry, server: TestRegistry, into: Path):
    server.submit(json.dumps({"meta": {"id": "M1"}, "Codelist": [structures.CODELIST_FUSION]}).encode())
    assert registry.list_structures(FUSION_JSON).urns == (SEX,)
    assert urns_in(registry.read_one(SEX, FUSION_JSON, into)) == [SEX]


def test_a_period_of_its_log_goes_by_the_time_of_its_transactions(registry: FusionRegistry, server: TestRegistry):
    for minutes in range(4):
        server.store.clock.freeze(START + timedelta(minutes=minutes))
        server.submit(codelists(codelist("CL_A", "1.0", f"C{minutes}")))

    assert registry.period(START + timedelta(minutes=1), START + timedelta(minutes=3)) == LogPeriod(1, (2, 3), True)
    assert registry.period(START - timedelta(days=1), START) == LogPeriod(0, (), True)
    [first, *later] = registry.transactions(0).transactions
    assert first.added == (urn("CL_A"),)
    assert {each.added for each in later} == {()}


def test_a_registry_that_shows_less_of_its_log_than_was_asked_for_may_have_had_more(
    registry: FusionRegistry, server: TestRegistry
):
    for minutes in range(3):
        server.store.clock.freeze(START + timedelta(minutes=minutes))
        server.submit(codelists(codelist("CL_A", "1.0", f"C{minutes}")))
    server.faults.half(path="/ws/registry/tx/searchTransactions", times=None)

    assert registry.period(START - timedelta(days=1), START + timedelta(days=1)) == LogPeriod(2, (3,), False)
