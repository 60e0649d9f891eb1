"""Schemas mark artefacts, and hold nothing back."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from builders import structures
from contexture.sources.sdmx import Artefact, split
from contexture.sources.sdmx.validation import SchemaValidator
from samples_location import samples_or_skip

VALIDATOR = SchemaValidator()
SENDER = '<{m}Sender id="X"/>'


def one(message: str) -> Artefact:
    [artefact] = split(BytesIO(message.encode()))
    return artefact


def with_sender(message: str) -> str:
    return message.replace("</mes:Header>", SENDER.format(m="mes:") + "</mes:Header>")


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_a_valid_artefact_of_ml_stays_as_it_is(version):
    artefact = one(with_sender(structures.ml(version, ("Dataflows", structures.DATAFLOW_3))))
    if version == "2.1":
        artefact = one(with_sender(structures.ml(version, ("Codelists", structures.CODELIST_2_1))))
    assert VALIDATOR.marked(artefact) is artefact


def test_a_valid_artefact_of_2_0_stays_as_it_is():
    artefact = one(with_sender(structures.ml("2.0", ("CodeLists", structures.CODELIST_2_0))))
    assert VALIDATOR.marked(artefact) is artefact


def test_an_invalid_artefact_of_ml_is_marked_and_otherwise_the_same():
    wrong = structures.CODELIST_2_1.replace('<str:Code id="M">', '<str:Code id="not an id">')
    artefact = one(with_sender(structures.ml("2.1", ("Codelists", wrong))))
    marked = VALIDATOR.marked(artefact)
    assert [finding.code for finding in marked.findings] == ["invalid", "invalid"]
    assert marked.findings[0].message.startswith("line 2: Element 'Code', attribute 'id'")
    assert (marked.content, marked.urn, marked.message()) == (artefact.content, artefact.urn, artefact.message())


@pytest.mark.parametrize(
    ("version", "prepared"),
    [("2.0", "2024-01-01T00:00:00Z"), ("2.1", "2024-01-01T00:00:00Z"), ("2.1", "2024-01-01")],
)
def test_a_valid_artefact_of_json_stays_as_it_is(version, prepared):
    head = {**structures.meta(version), "prepared": prepared, "sender": {"id": "X"}}
    artefact = one(json.dumps({"meta": head, "data": {"codelists": [structures.CODELIST_JSON]}}))
    assert VALIDATOR.marked(artefact) is artefact


def test_an_invalid_artefact_of_json_is_marked_with_its_place():
    head = {**structures.meta("2.0"), "sender": {"id": "X"}}
    artefact = one(json.dumps({"meta": head, "data": {"codelists": [{**structures.CODELIST_JSON, "codes": 7}]}}))
    assert [str(finding) for finding in VALIDATOR.marked(artefact).findings] == [
        'invalid: data/codelists/0/codes: 7 is not of type "array"'
    ]


def test_fusion_json_has_no_schema():
    artefact = one(json.dumps({"Codelist": [structures.CODELIST_FUSION]}))
    assert VALIDATOR.marked(artefact) is artefact


def test_what_is_too_large_to_be_checked_is_reported():
    artefact = one(structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)))
    marked = SchemaValidator(largest_bytes=100).marked(artefact)
    assert [str(finding) for finding in marked.findings] == [
        "unchecked: not validated, because it has more than 100 bytes"
    ]


@pytest.mark.parametrize(
    "name", ["ml21/ECB_EXR1_structure-full.xml", "ml30/TWG_geogridcodelist.xml", "json20/FMR_CL_FREQ.json"]
)
def test_messages_around_real_artefacts_are_valid(name):
    with (samples_or_skip() / "sdmx" / name).open("rb") as stream:
        assert [
            VALIDATOR.marked(artefact).findings for artefact in split(stream) if VALIDATOR.marked(artefact).findings
        ] == []
