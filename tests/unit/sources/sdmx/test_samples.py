"""The real messages of registries: exactly the artefacts that are known to be in them."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from contexture.sources.sdmx import split
from samples_location import samples, samples_or_skip

FOLDER = samples()
INDEX = FOLDER / "sdmx" / "expected_urns.json" if FOLDER else None
EXPECTED = json.loads(INDEX.read_text()) if INDEX and INDEX.exists() else {"none at hand": []}


@pytest.mark.parametrize("name", EXPECTED)
def test_exactly_the_known_artefacts_are_found(name):
    file = samples_or_skip() / "sdmx" / name
    with file.open("rb") as stream:
        parts = split(stream)
        assert sorted(artefact.urn for artefact in parts if artefact.urn) == sorted(EXPECTED[name])
    assert parts.findings == ()


@pytest.mark.parametrize("name", EXPECTED)
def test_each_artefact_is_a_piece_of_the_file_and_the_same_in_a_message_of_its_own(name):
    raw = (samples_or_skip() / "sdmx" / name).read_bytes()
    for artefact in split(BytesIO(raw)):
        assert raw[artefact.offset : artefact.offset + artefact.size] == artefact.content
        [again] = split(BytesIO(artefact.message()))
        assert again.message() == artefact.message()
        assert (again.content, again.content_hash) == (artefact.content, artefact.content_hash)
        assert (again.urn, again.references, again.format) == (artefact.urn, artefact.references, artefact.format)


def test_what_is_left_without_a_urn_are_the_concepts_of_2_0():
    with (samples_or_skip() / "sdmx" / "ml20" / "TWG_StructureSample.xml").open("rb") as stream:
        unnamed = [artefact for artefact in split(stream) if artefact.urn is None]
    assert {artefact.kind for artefact in unnamed} == {"Concept"}
    assert {finding.code for artefact in unnamed for finding in artefact.findings} == {"not-maintainable"}


def test_the_same_codelist_is_alike_in_two_formats():
    folder = samples_or_skip() / "sdmx"
    names = ("fusion/FMR_CL_FREQ.fusion.json", "json20/FMR_CL_FREQ.json")
    found = [next(split(BytesIO((folder / name).read_bytes()))) for name in names]
    assert found[0].urn == found[1].urn == "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_FREQ(2.0)"


def test_references_of_a_real_data_structure():
    with (samples_or_skip() / "sdmx" / "ml21" / "ECB_EXR1_structure-full.xml").open("rb") as stream:
        by_urn = {artefact.urn: artefact for artefact in split(stream)}
    of = "urn:sdmx:org.sdmx.infomodel."
    assert by_urn[f"{of}datastructure.Dataflow=ECB:EXR(1.0)"].references == (
        f"{of}datastructure.DataStructure=ECB:ECB_EXR1(1.0)",
    )
    names = "COLLECTION CURRENCY DECIMALS EXR_SUFFIX EXR_TYPE FREQ OBS_CONF OBS_STATUS ORGANISATION UNIT UNIT_MULT"
    assert by_urn[f"{of}datastructure.DataStructure=ECB:ECB_EXR1(1.0)"].references == (
        *(f"{of}codelist.Codelist=ECB:CL_{name}(1.0)" for name in names.split()),
        f"{of}conceptscheme.ConceptScheme=ECB:ECB_CONCEPTS(1.0)",
    )
