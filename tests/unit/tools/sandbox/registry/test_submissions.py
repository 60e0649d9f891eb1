"""Submissions: actions, credentials, all or nothing. Endpoint and actions: SDMX reference, section 2.1."""

from __future__ import annotations

import json

import pytest

from builders import structures
from builders.registry import ECB_EXR1, EXR, SEX, SEX_AND_FLOW, STRUCTURE_OF_EXR, Client, codelist, codelists, urn
from contexture_sandbox.registry.refusals import Refusal
from contexture_sandbox.registry.submissions import Submission, delete, submit

EVERYTHING = "/sdmx/v2/structure/*/*/*/*"


def contents(client: Client) -> list[bytes]:
    return [artefact.content for artefact in client.artefacts(EVERYTHING)]


def test_a_submission_is_one_transaction_of_what_it_added_and_modified(client: Client):
    first = client.submit(codelists(codelist("CL_A")))
    second = client.submit(codelists(codelist("CL_A", "1.0", "A"), codelist("CL_B")))
    assert (first.id, first.added, first.modified, first.deleted) == (1, (urn("CL_A"),), (), ())
    assert (second.id, second.added, second.modified) == (2, (urn("CL_B"),), (urn("CL_A"),))


def test_replace_puts_the_submitted_bytes_in_the_place_of_what_was_there(client: Client):
    client.submit(codelists(codelist("CL_A", "1.0", "A", "B")))
    client.submit(codelists(codelist("CL_A", "1.0", "C")))
    assert contents(client) == [b'<str:Codelist id="CL_A" agencyID="X" version="1.0"><str:Code id="C"/></str:Codelist>']


def test_append_adds_new_items_and_refuses_those_that_are_there(client: Client):
    """Reference, section 2.2, step 4: Append and Merge submissions are partial."""
    client.submit(codelists(codelist("CL_A", "1.0", "A")))
    client.submit(codelists(codelist("CL_A", "1.0", "B"), codelist("CL_B")), action="Append")
    first, second = client.artefacts(EVERYTHING)
    assert first.content.count(b"<str:Code ") == 2
    assert second.urn == urn("CL_B")
    with pytest.raises(Refusal, match="the item A exists already"):
        client.submit(codelists(codelist("CL_A", "1.0", "A")), action="Append")


def test_append_refuses_what_has_no_items_and_is_there(client: Client):
    flow = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1)).encode()
    client.submit(flow, action="Append")
    with pytest.raises(Refusal, match=r"EXR\(1\.0\) exists already"):
        client.submit(flow, action="Append")


def test_merge_replaces_items_and_keeps_the_others(client: Client):
    client.submit(codelists(structures.CODELIST_2_1))
    client.submit(
        codelists('<str:Codelist id="CL_SEX" agencyID="SDMX" version="2.1"><str:Code id="M"/></str:Codelist>'),
        action="Merge",
    )
    [artefact] = client.artefacts(EVERYTHING)
    assert b'<com:Name xml:lang="fr">Sexe</com:Name>' in artefact.content
    assert b"Female &amp; other" in artefact.content
    assert b">Male<" not in artefact.content
    assert artefact.content.count(b"<str:Code ") == 2


def test_merge_works_on_json_too(client: Client):
    def message(*codes: dict[str, str]) -> bytes:
        return structures.sdmx_json(
            "2.0", {"codelists": [{"id": "CL_A", "agencyID": "X", "version": "1.0", "codes": list(codes)}]}
        ).encode()

    client.submit(message({"id": "A", "name": "a"}, {"id": "B", "name": "b"}))
    client.submit(message({"id": "B", "name": "new"}, {"id": "C", "name": "c"}), action="Merge")
    assert json.loads(contents(client)[0])["codes"] == [
        {"id": "A", "name": "a"},
        {"id": "B", "name": "new"},
        {"id": "C", "name": "c"},
    ]


def test_the_sandbox_merges_within_one_format(client: Client):
    client.submit(codelists(structures.CODELIST_2_1))
    sdmx_json = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()
    with pytest.raises(Refusal, match="another format"):
        client.submit(sdmx_json, action="Merge")


def test_full_replace_deletes_everything_else(client: Client):
    client.submit(codelists(codelist("CL_A"), codelist("CL_B")))
    done = client.submit(codelists(codelist("CL_B", "1.0", "B"), codelist("CL_C")), action="FullReplace")
    assert (done.added, done.modified, done.deleted) == ((urn("CL_C"),), (urn("CL_B"),), (urn("CL_A"),))
    assert client.urns(EVERYTHING) == [urn("CL_B"), urn("CL_C")]


def test_delete_takes_a_message_or_a_url(client: Client):
    client.submit(SEX_AND_FLOW)
    done = client.submit(codelists(structures.CODELIST_2_1), action="Delete")
    assert (done.action, done.deleted, done.added) == ("Delete", (SEX,), ())
    headers = {"authorization": "Basic cm9vdDpwYXNzd29yZA=="}
    url = "/ws/secure/sdmxapi/rest/dataflow/ECB/EXR/1.0"
    assert client.ask(url, method="DELETE", headers=headers).status == 200
    assert client.ask(url, method="DELETE", headers=headers).status == 404
    assert client.registry.store.transactions[-1].deleted == (EXR,)


def test_a_structure_may_come_back_after_its_deletion(client: Client):
    client.submit(codelists(codelist()))
    client.later(1)
    delete(client.registry.store, [urn()])
    client.later(1)
    assert client.submit(codelists(codelist())).added == (urn(),)
    assert client.urns(EVERYTHING) == [urn()]
    assert client.ask(f"{EVERYTHING}?asOf=2026-11-01T12:00:01.500Z").status == 404


@pytest.mark.parametrize(
    ("message", "action", "reason"),
    [
        (codelists(codelist("CL_A")) + b"<", "Replace", "can't be read"),
        (codelists(), "Replace", "holds no structures"),
        (codelists(codelist("CL_A"), codelist("CL_A")), "Replace", "is there twice"),
        (codelists('<str:Codelist id="CL_A"/>'), "Replace", "has no identity"),
        (structures.ml("2.0", ("CodeLists", structures.CODELIST_2_0)).encode(), "Replace", "can't keep SDMX-ML 2.0"),
        (codelists(codelist("CL_OLD"), codelist("CL_NONE")), "Delete", r"there is no .*CL_NONE"),
    ],
)
def test_what_can_not_be_done_does_nothing(client: Client, message: bytes, action: str, reason: str):
    client.submit(codelists(codelist("CL_OLD")))
    with pytest.raises(Refusal, match=reason):
        submit(client.registry.store, Submission((message,), action))  # type: ignore[arg-type]
    assert client.urns(EVERYTHING) == [urn("CL_OLD")]
    assert len(client.registry.store.transactions) == 1


def test_a_post_needs_credentials_and_reports_what_was_done(client: Client):
    message = codelists(codelist())
    assert client.post(message, "Replace", password="wrong").status == 401
    refused = client.ask("/ws/secure/sdmxapi/rest", method="POST", body=message)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Basic realm="registry"')
    done = client.post(message, "APPEND")
    assert done.status == 200
    assert f"<URN>{urn()}</URN>".encode() in done.body
    assert client.registry.store.transactions[0].action == "Append"
    assert client.post(message, "Destroy").status == 400
    assert client.post(b"nonsense", "Replace").status == 400


def test_a_strict_registry_refuses_references_to_nothing(client: Client):
    """The documented 400: an unresolvable reference to a required structure."""
    store = client.registry.store
    flow = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1)).encode()
    both = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1), ("DataStructures", STRUCTURE_OF_EXR)).encode()
    with pytest.raises(Refusal, match=r"refers to .*ECB_EXR1\(2\.0\), which would not be there"):
        submit(store, Submission((flow,)), strict=True)
    submit(store, Submission((both,)), strict=True)
    with pytest.raises(Refusal, match="which would not be there"):
        delete(store, [ECB_EXR1], strict=True)
    assert delete(store, [ECB_EXR1, EXR], strict=True).deleted == (ECB_EXR1, EXR)


def test_what_is_kept_of_a_submission_says_its_format(client: Client):
    message = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()
    client.post(message, "Replace")
    answer = client.ask("/ws/registry/tx/submission/1")
    assert (answer.body, answer.headers["content-type"]) == (
        message,
        "application/vnd.sdmx.structure+json;version=2.0.0",
    )
