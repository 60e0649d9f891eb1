"""Data registrations of the test registry: SDMX-REST 2.1, doc/registration.md of the specification."""

from __future__ import annotations

from builders import structures
from builders.registrations import as_json, registration, response, submission, urn
from builders.registry import START_MS, Client, codelist, codelists
from contexture.sources.sdmx import Format

ML_2_1 = "application/vnd.sdmx.registry+xml;version=2.1"
RESOURCE = "/sdmx/v2/registration"
AGREEMENT = (
    '<str:ProvisionAgreement id="PA_EXR" agencyID="{agency}" version="1.0"><com:Name xml:lang="en">P</com:Name>'
    '<str:StructureUsage><Ref id="EXR" agencyID="ECB" version="1.0" package="datastructure" class="Dataflow"/>'
    '</str:StructureUsage><str:DataProvider><Ref id="P1" maintainableParentID="DATA_PROVIDERS" '
    'maintainableParentVersion="1.0" agencyID="SDMX" package="base" class="DataProvider"/></str:DataProvider>'
    "</str:ProvisionAgreement>"
)


def filled(client: Client) -> Client:
    """With a flow, the agreement of ECB about it, and a registration of ECB and of BIS each."""
    agreement = AGREEMENT.format(agency="ECB")
    client.submit(
        structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1), ("ProvisionAgreements", agreement)).encode()
    )
    client.submit(submission(registration("ecb-1"), registration("bis-1", agency="BIS")))
    return client


def urns(client: Client, path: str) -> list[str | None]:
    return client.urns(f"{RESOURCE}/{path}", accept=ML_2_1)


def test_each_kind_of_query_selects(client: Client):
    filled(client)
    both = [urn("bis-1", "BIS"), urn("ecb-1")]
    assert urns(client, "provider/*/*") == urns(client, "*/*/*/*") == both
    assert urns(client, "id/ecb-1") == [urn("ecb-1")]
    assert urns(client, "provisionagreement/BIS/*/*") == [urn("bis-1", "BIS")]
    assert urns(client, "provider/SDMX") == [urn("ecb-1")]
    assert urns(client, "dataflow/ECB,IMF/EXR/1.0") == [urn("ecb-1")]
    assert urns(client, "datastructure/ECB/ECB_EXR1/2.0") == [urn("ecb-1")]


def test_what_is_not_there_or_not_known_is_refused(client: Client):
    filled(client)
    assert client.ask(f"{RESOURCE}/id/other", headers={"accept": ML_2_1}).status == 404
    assert client.ask(f"{RESOURCE}/codelist/*/*/*", headers={"accept": ML_2_1}).status == 400
    assert client.ask(f"{RESOURCE}/provider/*/P1", headers={"accept": ML_2_1}).status == 501
    assert client.ask(f"{RESOURCE}/provider/*/*", headers={"accept": Format.SDMX_ML_2_1.media_type}).status == 406
    assert client.ask(f"{RESOURCE}/provider/*/*?updatedAfter=x", headers={"accept": ML_2_1}).status == 400


def test_those_that_were_updated_after_a_moment(client: Client):
    client.submit(submission(registration("old")))
    client.later(60)
    client.submit(submission(registration("new")))
    assert client.registry.store.now_ms() == START_MS + 60_000
    assert urns(client, "provider/*/*?updatedAfter=2026-11-01T12:00:30Z") == [urn("new")]
    assert urns(client, "provider/*/*?updatedBefore=2026-11-01T12:00:30Z") == [urn("old")]


def test_structure_queries_show_none_and_the_log_shows_what_they_are(client: Client):
    client.submit(codelists(codelist()))
    client.submit(submission(registration("exr-1")))
    assert urn("exr-1") not in client.urns("/sdmx/v2/structure/*/*/*/*")
    assert [row["Type"] for row in client.json("/ws/registry/tx/searchTransactions")] == [
        "Registration Submission",
        "Structure Submission",
    ]
    assert b"exr-1" not in client.ask("/rss.xml").body
    client.registry.feeds_registrations = True
    assert b"ECB:exr-1(1.0)" in client.ask("/rss.xml").body


def test_restricted_ones_are_hidden_from_the_public(client: Client):
    filled(client)
    client.registry.restricted = {urn("ecb-1")}
    assert urns(client, "provider/*/*") == [urn("bis-1", "BIS")]


def test_they_are_returned_in_the_formats_they_were_submitted_in(client: Client):
    client.submit(as_json("exr-1"), as_json("exr-1", fusion=True))
    for media_type in ("application/vnd.sdmx.registry+json;version=2.0", "application/vnd.fusion.json"):
        [found] = client.artefacts(f"{RESOURCE}/id/exr-1", accept=media_type)
        assert found.urn == urn("exr-1")
    assert client.urns(f"{RESOURCE}/id/exr-1", accept=ML_2_1) == []


def test_a_response_can_be_submitted_and_replaces_structures_alone(client: Client):
    client.submit(response(registration("exr-1")))
    client.submit(codelists(codelist("CL_B")), action="FullReplace")
    assert urns(client, "provider/*/*") == [urn("exr-1")]
