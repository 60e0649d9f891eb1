"""Splitting SDMX-JSON and Fusion-JSON: own bytes, nothing lost, everything odd reported."""

from __future__ import annotations

import json
from hashlib import sha256
from io import BytesIO

import pytest

from builders import structures
from contexture.sources.sdmx import StructureMessageError, split
from contexture.sources.sdmx.errors import LimitExceededError, Limits
from contexture.sources.sdmx.splitting import Split

OF = "urn:sdmx:org.sdmx.infomodel."
META = json.dumps(structures.meta("2.0"))


def parts(message: str, limits: Limits | None = None) -> Split:
    return split(BytesIO(message.encode()), limits=limits or Limits())


def test_an_artefact_is_its_own_bytes_and_says_who_it_is():
    raw = json.dumps(structures.CODELIST_JSON, indent=1)
    [artefact] = parts(f'{{"meta": {META}, "data": {{"codelists": [ {raw} ]}}}}')
    assert artefact.content == raw.encode()
    assert (artefact.kind, artefact.agency, artefact.id, artefact.version) == ("Codelist", "SDMX", "CL_SEX", "2.1")
    assert artefact.urn == artefact.declared_urn == f"{OF}codelist.Codelist=SDMX:CL_SEX(2.1)"
    assert artefact.findings == ()


def test_the_message_around_one_artefact_has_the_header_and_its_place():
    data = {"dataflows": [structures.DATAFLOW_JSON], "codelists": [structures.CODELIST_JSON]}
    dataflow, codelist = parts(structures.sdmx_json("2.0", data))
    assert json.loads(dataflow.message()) == {
        "meta": json.loads(META),
        "data": {"dataflows": [structures.DATAFLOW_JSON]},
    }
    assert json.loads(codelist.message()) == {
        "meta": json.loads(META),
        "data": {"codelists": [structures.CODELIST_JSON]},
    }
    assert codelist.media_type == "application/vnd.sdmx.structure+json;version=2.0.0"


def test_fusion_json_keeps_its_form():
    message = {"meta": {"id": "M"}, "Codelist": [structures.CODELIST_FUSION], "Dataflow": [structures.DATAFLOW_JSON]}
    codelist, _ = parts(json.dumps(message))
    assert json.loads(codelist.message()) == {"meta": {"id": "M"}, "Codelist": [structures.CODELIST_FUSION]}
    assert codelist.urn == f"{OF}codelist.Codelist=SDMX:CL_SEX(2.1)"
    assert codelist.declared_urn is None


def test_a_header_at_the_end_is_found_where_the_stream_can_be_read_twice():
    message = f'{{"data": {{"codelists": [{json.dumps(structures.CODELIST_JSON)}]}}, "meta": {META}}}'
    found = parts(message)
    [artefact] = found
    assert json.loads(artefact.message())["meta"] == json.loads(META)
    assert found.findings == ()


def test_a_header_at_the_end_of_a_stream_is_reported_as_missing():
    class Stream:
        def __init__(self) -> None:
            self.read = BytesIO(
                f'{{"data": {{"codelists": [{json.dumps(structures.CODELIST_JSON)}]}}, "meta": {META}}}'.encode()
            ).read

    found = split(Stream())
    [artefact] = found
    assert json.loads(artefact.message()) == {"data": {"codelists": [structures.CODELIST_JSON]}}
    assert [finding.code for finding in found.findings] == ["late-header", "notice"]


def test_an_unknown_kind_is_split_and_reported():
    declared = f"{OF}future.Novelty=X:N(1.0)"
    [artefact] = parts(structures.sdmx_json("2.1", {"novelties": [{"id": "N", "urn": declared}]}))
    assert (artefact.kind, artefact.urn) == ("novelties", declared)
    assert [finding.code for finding in artefact.findings] == ["unknown-kind"]


def test_kinds_of_a_registry_of_its_own_are_known_by_their_urns():
    declared = "urn:sdmx:com.example.own.validation.ValidationScheme=X:V(1.0)"
    scheme = {"id": "V", "agencyId": "X", "urn": declared}
    _, validation = parts(json.dumps({"Codelist": [structures.CODELIST_FUSION], "ValidationScheme": [scheme]}))
    assert (validation.kind, validation.urn) == ("ValidationScheme", declared)
    assert json.loads(validation.message()) == {"ValidationScheme": [scheme]}


@pytest.mark.parametrize(
    ("array", "kind", "urn"),
    [
        ("dataConstraints", "DataConstraint", "registry.DataConstraint=X:A(1.0)"),
        ("contentConstraints", "ContentConstraint", "registry.ContentConstraint=X:A(1.0)"),
        ("hierarchies", "Hierarchy", "codelist.Hierarchy=X:A(1.0)"),
        ("processes", "Process", "process.Process=X:A(1.0)"),
        ("reportingTaxonomies", "ReportingTaxonomy", "categoryscheme.ReportingTaxonomy=X:A(1.0)"),
        ("geoGridCodelists", "GeoGridCodelist", "codelist.Codelist=X:A(1.0)"),
        ("metadataflows", "Metadataflow", "metadatastructure.Metadataflow=X:A(1.0)"),
        ("vtlMappingSchemes", "VtlMappingScheme", "transformation.VtlMappingScheme=X:A(1.0)"),
    ],
)
def test_arrays_are_named_for_what_they_hold(array, kind, urn):
    [artefact] = parts(structures.sdmx_json("2.0", {array: [{"id": "A", "agencyID": "X"}]}))
    assert (artefact.kind, artefact.urn) == (kind, OF + urn)


def test_references_are_urns_but_not_those_of_items_or_links():
    structure = {
        "id": "D",
        "agencyID": "X",
        "links": [{"rel": "parent", "urn": f"{OF}base.AgencyScheme=X:AGENCIES(1.0)"}],
        "dimensions": [
            {
                "conceptIdentity": f"{OF}conceptscheme.Concept=X:CS(1.0).FREQ",
                "enumeration": f"{OF}codelist.Codelist=X:CL(1.0)",
            },
            {
                "urn": f"{OF}datastructure.Dimension=X:OTHER(1.0).FREQ",
                "self": f"{OF}datastructure.DataStructure=X:D(1.0)",
            },
        ],
    }
    [artefact] = parts(structures.sdmx_json("2.0", {"dataStructures": [structure]}))
    assert artefact.references == (f"{OF}codelist.Codelist=X:CL(1.0)", f"{OF}conceptscheme.ConceptScheme=X:CS(1.0)")


def test_the_canonical_form_has_sorted_keys_and_numbers_as_they_are_written():
    [artefact] = parts(
        '{"meta": {}, "data": {"codelists": [{"id": "A", "agencyID": "\\u0058", "b": [1.50, -0, 1E2]}]}}'
    )
    assert artefact.content_hash == sha256(b'{"agencyID":"X","b":[1.50,-0,1E2],"id":"A"}').digest()


def test_what_is_beside_structures_is_reported():
    message = json.dumps(
        {
            "meta": structures.meta("2.0"),
            "extra": 1,
            "errors": [{"code": 510}],
            "data": {"codelists": [structures.CODELIST_JSON, "text", None], "odd": {"deep": [1, "]"]}},
        }
    )
    found = parts(message)
    assert len(list(found)) == 1
    assert [str(finding) for finding in found.findings] == [
        "outside: the member extra is not an array of structures",
        "notice: the sender reports 1 errors",
        "outside: an element among Codelist is not an object",
        "outside: an element among Codelist is not an object",
        "outside: the member odd is not an array of structures",
    ]


def test_brackets_and_quotes_in_texts_have_no_effect():
    tricky = {
        "id": "A",
        "agencyID": "X",
        "name": '} ] { [ \\" " \\\\',
        "codes": [{"name": "\\"}, {"a": [[], {}, [{}]]}],
    }
    first, second = parts(structures.sdmx_json("2.0", {"codelists": [tricky, structures.CODELIST_JSON]}))
    assert json.loads(first.content) == tricky
    assert json.loads(second.content) == structures.CODELIST_JSON


def test_every_cut_of_a_message_is_an_error():
    message = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]})
    for cut in range(1, len(message)):
        with pytest.raises(StructureMessageError):
            list(parts(message[:cut]))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('{"meta": {}, "data": {}} {}', "something follows"),
        ('{"meta": {}, "data": {"codelists": [{"id": }]}}', "not valid JSON"),
        ('{"meta": {}, "data": {"codelists": [{"id": "A" "b": 1}]}}', "not valid JSON"),
        ('{"meta": {}, "data": {"codelists": [{"id": "A", "b": [1}]}]}}', "not valid JSON|broken"),
        ('{"meta": {}, "data": {"codelists": [,]}}', "a value is expected"),
        ('{"meta": {}, "data": {"codelists": [{}}}', "']' is expected"),
        ('{"meta": {}, data: {}}', "a key is expected"),
        ('{"meta": {}, "data" {}}', "':' is expected"),
        ('{"meta": {,}, "data": {"codelists": []}}', "the header is not valid JSON"),
        ('{"meta": {}, "data": {"codelists": [{"id": "\\ud800"}]}}', "not valid JSON"),
    ],
)
def test_broken_json_is_refused(message, said):
    with pytest.raises(StructureMessageError, match=said):
        list(parts(message))


def test_bytes_that_are_no_utf8_are_refused():
    for broken in (b'{"id": "\xff"}', b'{"\xff": 1}', b'{"x": {"y": "\xff"}}'):
        with pytest.raises(StructureMessageError, match="not valid JSON"):
            list(split(BytesIO(b'{"meta": {}, "data": {"codelists": [' + broken + b"]}}")))


def test_depth_is_limited():
    deep = '{"id": "A", "x": ' + "[" * 250 + "]" * 250 + "}"
    with pytest.raises(LimitExceededError, match="nested deeper than 200"):
        list(parts(f'{{"meta": {{}}, "data": {{"codelists": [{deep}]}}}}'))


@pytest.mark.parametrize("piece", [b'"', b"{", b"1, "])
def test_sizes_are_limited_before_the_end(piece):
    class Endless:
        def __init__(self) -> None:
            self.given = 0
            self._next = b'{"meta": {}, "data": {"codelists": [{"id": "A", "codes": [' + (
                b'"' if piece == b'"' else b""
            )

        def read(self, size: int, /) -> bytes:
            taken, self._next = (
                self._next,
                piece.replace(b'"', b"text ").replace(b"{", b'{"a": 1}, ') * (size // len(piece)),
            )
            self.given += len(taken)
            return taken

    stream = Endless()
    with pytest.raises(LimitExceededError, match="an artefact is larger than 1,000,000"):
        list(split(stream, limits=Limits(artefact_bytes=1_000_000)))
    assert stream.given < 10_000_000
