"""The structures to begin with."""

from __future__ import annotations

from io import BytesIO

from contexture.sources.sdmx import split
from contexture.sources.sdmx.validation import SchemaValidator
from contexture_sandbox.registry import seed_codelist, seed_message


def test_ten_structures_are_of_four_kinds_and_valid():
    validator = SchemaValidator()
    artefacts = [validator.marked(artefact) for artefact in split(BytesIO(seed_message(10)))]
    assert [f"{artefact.kind} {artefact.agency}:{artefact.id}" for artefact in artefacts] == [
        "Dataflow CITY:DF_00000_8",
        "Dataflow CITY:DF_00000_9",
        "Codelist CITY:CL_00000",
        "Codelist CITY:CL_00001",
        "Codelist CITY:CL_00002",
        "Codelist CITY:CL_00003",
        "Codelist CITY:CL_00004",
        "Codelist CITY:CL_00005",
        "ConceptScheme CITY:CS_00000",
        "DataStructure CITY:DSD_00000",
    ]
    assert [artefact.findings for artefact in artefacts] == [()] * 10


def test_nothing_refers_to_what_is_not_there():
    for count in (1, 7, 28, 45):
        artefacts = list(split(BytesIO(seed_message(count))))
        assert len(artefacts) == count
        urns = {artefact.urn for artefact in artefacts}
        assert {urn for artefact in artefacts for urn in artefact.references} <= urns


def test_another_seed_changes_code_lists_alone():
    first, second = ({a.urn: a for a in split(BytesIO(seed_message(10, seed)))} for seed in (1, 2))
    assert seed_message(10, 1) == seed_message(10, 1)
    changed = {first[urn].kind for urn in first if first[urn].content_hash != second[urn].content_hash}
    assert (first.keys() == second.keys(), changed) == (True, {"Codelist"})


def test_a_code_list_can_be_given_other_codes():
    [artefact] = split(BytesIO(seed_codelist(7, codes=2)))
    assert artefact.urn == "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CITY.TRAFFIC:CL_00007(1.0)"
    assert artefact.content.count(b"<str:Code ") == 2
