"""Splitting SDMX-ML: own bytes, nothing lost, everything odd reported."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import pytest

from builders import structures
from contexture.sources.sdmx import Artefact, StructureMessageError, split
from contexture.sources.sdmx.errors import LimitExceededError, Limits
from contexture.sources.sdmx.splitting import Split

OF = "urn:sdmx:org.sdmx.infomodel."


def parts(message: str, limits: Limits | None = None) -> Split:
    return split(BytesIO(message.encode()), limits=limits or Limits())


def artefacts(message: str) -> list[Artefact]:
    return list(parts(message))


def test_an_artefact_is_its_own_bytes_and_says_who_it_is():
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)))
    assert artefact.content == structures.CODELIST_2_1.encode()
    assert artefact.size == len(structures.CODELIST_2_1.encode())
    assert (artefact.kind, artefact.agency, artefact.id, artefact.version) == ("Codelist", "SDMX", "CL_SEX", "2.1")
    assert artefact.urn == artefact.declared_urn == f"{OF}codelist.Codelist=SDMX:CL_SEX(2.1)"
    assert artefact.findings == ()


def test_the_message_around_one_artefact_is_the_whole_message_without_the_others():
    whole = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1))
    codelist, dataflow = artefacts(whole)
    assert codelist.message().decode() == structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    assert dataflow.message().decode() == structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1))
    assert codelist.media_type == "application/vnd.sdmx.structure+xml;version=2.1"


def test_an_empty_element_is_an_artefact_too():
    first = '<str:Codelist id="A" agencyID="X"/>'
    message = structures.ml("2.1", ("Codelists", f'{first}<str:Codelist id="B" agencyID="X"></str:Codelist>'))
    assert [artefact.content for artefact in artefacts(message)] == [
        first.encode(),
        b'<str:Codelist id="B" agencyID="X"></str:Codelist>',
    ]


def test_an_empty_element_at_the_end_of_its_container_ends_there():
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", '<str:Codelist id="A" agencyID="X" uri=">"/>')))
    assert artefact.content == b'<str:Codelist id="A" agencyID="X" uri=">"/>'


def test_text_that_looks_like_an_end_is_none():
    tricky = '<str:Codelist id="A" agencyID="X"><!--</str:Codelist>--><![CDATA[</str:Codelist>/>]]></str:Codelist >'
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", tricky)))
    assert artefact.content == tricky.encode()


def test_comments_before_an_artefact_go_with_it():
    message = structures.ml("2.1", ("Codelists", f"<!-- the sexes -->{structures.CODELIST_2_1}{'<!-- end -->'}"))
    [artefact] = artefacts(message)
    assert b"<str:Codelists><!-- the sexes --><str:Codelist " in artefact.message()
    assert artefact.content == structures.CODELIST_2_1.encode()


def test_kinds_of_a_container_may_differ():
    schemes = '<str:AgencyScheme id="AGENCIES" agencyID="X"/><str:DataProviderScheme id="DATA_PROVIDERS" agencyID="X"/>'
    assert [artefact.urn for artefact in artefacts(structures.ml("2.1", ("OrganisationSchemes", schemes)))] == [
        f"{OF}base.AgencyScheme=X:AGENCIES(1.0)",
        f"{OF}base.DataProviderScheme=X:DATA_PROVIDERS(1.0)",
    ]


def test_an_unknown_kind_is_split_and_reported():
    declared = f"{OF}future.Novelty=X:N(1.0)"
    novelty = f'<str:Novelty id="N" agencyID="X" urn="{declared}"><str:Part/></str:Novelty>'
    [artefact] = artefacts(structures.ml("3.1", ("Novelties", novelty)))
    assert (artefact.kind, artefact.urn, artefact.content) == ("Novelty", declared, novelty.encode())
    assert [finding.code for finding in artefact.findings] == ["unknown-kind"]


def test_an_unknown_kind_without_a_urn_is_kept_without_one():
    [artefact] = artefacts(structures.ml("3.1", ("Novelties", '<str:Novelty id="N" agencyID="X"/>')))
    assert artefact.urn is None
    assert [finding.code for finding in artefact.findings] == ["unknown-kind", "no-identity"]


def test_concepts_of_their_own_are_kept_and_reported():
    concept = '<str:Concept id="FREQ" agencyID="BIS"><str:Name>Frequency</str:Name></str:Concept>'
    [artefact] = artefacts(structures.ml("2.0", ("Concepts", concept)))
    assert (artefact.kind, artefact.urn, artefact.content) == ("Concept", None, concept.encode())
    assert [finding.code for finding in artefact.findings] == ["not-maintainable"]


def test_an_artefact_without_agency_has_no_urn():
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", '<str:Codelist id="A"/>')))
    assert artefact.urn is None
    assert [finding.code for finding in artefact.findings] == ["no-identity"]


def test_a_declared_urn_that_differs_is_reported_and_not_used():
    wrong = f"{OF}codelist.Codelist=X:B(1.0)"
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", f'<str:Codelist id="A" agencyID="X" urn="{wrong}"/>')))
    assert (artefact.urn, artefact.declared_urn) == (f"{OF}codelist.Codelist=X:A(1.0)", wrong)
    assert [str(finding) for finding in artefact.findings] == [
        f"urn-differs: {OF}codelist.Codelist=X:A(1.0) declares itself as {wrong}"
    ]


def test_what_is_beside_structures_is_reported():
    message = structures.ml("2.1", ("Codelists", f"stray{structures.CODELIST_2_1}")).replace(
        "</mes:Structures>",
        '</mes:Structures><f:Footer xmlns:f="urn:f"><f:Message code="510"/></f:Footer><mes:Odd><mes:Odder/></mes:Odd>',
    )
    found = parts(message)
    assert len(list(found)) == 1
    assert [finding.code for finding in found.findings] == ["outside", "notice", "outside"]
    assert found.findings[2].message == "Odd is not a structure, and in no artefact"
    assert found.findings[2].offset == message.index("<mes:Odd>")


def test_a_structure_without_a_container_is_one():
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    bare = message.replace("<str:Codelists>", "").replace("</str:Codelists>", "")
    [artefact] = artefacts(bare)
    assert artefact.content == structures.CODELIST_2_1.encode()
    assert artefact.message() == bare.encode()


@pytest.mark.parametrize(
    ("version", "request_"),
    [
        ("2.1", '<mes:SubmitStructureRequest action="Append">{}</mes:SubmitStructureRequest>'),
        ("3.0", "<mes:NotifyRegistryEvent><r:StructuralEvent>{}</r:StructuralEvent></mes:NotifyRegistryEvent>"),
    ],
)
def test_structures_in_a_registry_interface_get_a_structure_message_of_their_own(version, request_):
    structure = structures.ml(version, ("Codelists", structures.CODELIST_2_1))
    opening, closing = structure.index("<mes:Structures>"), structure.index("</mes:Structure>")
    interface = structure[:opening] + request_.format(structure[opening:closing]) + structure[closing:]
    interface = interface.replace("mes:Structure ", 'mes:RegistryInterface xmlns:r="urn:r" ')
    [artefact] = artefacts(interface.replace("</mes:Structure>", "</mes:RegistryInterface>"))
    assert artefact.content == structures.CODELIST_2_1.encode()
    assert b"Request" not in artefact.message()
    assert b"RegistryInterface" not in artefact.message()
    assert b"<mes:ID>M1</mes:ID>" in artefact.message()
    [again] = split(BytesIO(artefact.message()))
    assert again == Artefact(**{**fields(artefact), "offset": again.offset})


@pytest.mark.parametrize("opening", ["SubmitStructureRequest><r:Structure", "QueryStructureResponse"])
def test_structures_in_a_registry_interface_of_2_0(opening):
    registry = "http://www.SDMX.org/resources/SDMXML/schemas/v2_0/registry"
    status = '<r:StatusMessage status="Success"/>' if "Response" in opening else ""
    closing = "</r:Structure></mes:SubmitStructureRequest>" if "Request" in opening else "</mes:QueryStructureResponse>"
    interface = (
        f'<mes:RegistryInterface xmlns:r="{registry}" {structures.namespaces("2.0")}><mes:Header/>'
        f"<mes:{opening}>{status}<r:CodeLists>{structures.CODELIST_2_0}</r:CodeLists>{closing}</mes:RegistryInterface>"
    )
    found = parts(interface)
    [artefact] = list(found)
    assert artefact.content == structures.CODELIST_2_0.encode()
    assert artefact.urn == f"{OF}codelist.Codelist=BIS:CL_FREQ(1.0)"
    assert [finding.message for finding in found.findings] == (
        ["the sender adds a StatusMessage Success"] if status else []
    )
    [again] = split(BytesIO(artefact.message()))
    assert (again.urn, again.content_hash, again.content) == (artefact.urn, artefact.content_hash, artefact.content)
    assert again.message() == artefact.message()


def test_prefixes_declared_anywhere_around_are_declared_in_the_new_message():
    structure = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"
    message = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message"
    interface = (
        f'<RegistryInterface xmlns="{message}"><Header/><SubmitStructureRequest xmlns="urn:other">'
        f'<s:Structures xmlns:s="{structure}"><s:Codelists xmlns:q="urn:q"><s:Codelist id="A" agencyID="X" q:more="1">'
        "<note/></s:Codelist></s:Codelists></s:Structures></SubmitStructureRequest></RegistryInterface>"
    )
    [artefact] = artefacts(interface)
    [again] = split(BytesIO(artefact.message()))
    assert (again.content_hash, again.content) == (artefact.content_hash, artefact.content)


def test_the_canonical_form_is_a_sequence_of_names_attributes_texts_and_ends():
    codelist = '<str:Codelist id="A" agencyID="X">\n  <com:Name xml:lang="en">a &lt; b</com:Name>\n</str:Codelist>'
    [artefact] = artefacts(structures.ml("2.1", ("Codelists", codelist)))
    canonical = (
        b'"v2_1/structure Codelist",{"agencyID":"X","id":"A"},'
        b'"v2_1/common Name",{"http://www.w3.org/XML/1998/namespace lang":"en"},"a < b",0,0,'
    )
    assert artefact.content_hash == sha256(canonical).digest()


def test_references_of_2_1_are_read_from_ref():
    codelist = '<Ref id="CL" agencyID="X" version="3.0" class="Codelist" package="codelist"/>'
    concept = '<Ref id="FREQ" maintainableParentID="CS" maintainableParentVersion="2.0" agencyID="X" class="Concept"/>'
    structure = (
        '<str:DataStructure id="D" agencyID="X"><str:DataStructureComponents><str:DimensionList>'
        f"<str:Dimension id='FREQ'><str:ConceptIdentity>{concept}</str:ConceptIdentity><str:LocalRepresentation>"
        f"<str:Enumeration>{codelist}</str:Enumeration></str:LocalRepresentation></str:Dimension></str:DimensionList>"
        '<str:Group><str:GroupDimension><str:DimensionReference><Ref id="FREQ"/></str:DimensionReference>'
        "</str:GroupDimension></str:Group></str:DataStructureComponents></str:DataStructure>"
    )
    [artefact] = artefacts(structures.ml("2.1", ("DataStructures", structure)))
    assert artefact.references == (f"{OF}codelist.Codelist=X:CL(3.0)", f"{OF}conceptscheme.ConceptScheme=X:CS(2.0)")


def test_a_ref_without_a_class_is_understood_by_what_is_around_it():
    dataflow = structures.DATAFLOW_2_1.replace('package="datastructure" class="DataStructure"', "")
    metadataflow = dataflow.replace("Dataflow", "Metadataflow")
    containers = (("Dataflows", dataflow), ("Metadataflows", metadataflow))
    assert [artefact.references for artefact in artefacts(structures.ml("2.1", *containers))] == [
        (f"{OF}datastructure.DataStructure=ECB:ECB_EXR1(2.0)",),
        (f"{OF}metadatastructure.MetadataStructure=ECB:ECB_EXR1(2.0)",),
    ]


def test_a_categorisation_refers_to_a_category_also_where_the_ref_names_no_class():
    category = '<Ref id="A.B" maintainableParentID="CATS" maintainableParentVersion="1.2" agencyID="X"/>'
    categorisation = f'<str:Categorisation id="C" agencyID="X"><str:Target>{category}</str:Target></str:Categorisation>'
    [artefact] = artefacts(structures.ml("2.1", ("Categorisations", categorisation)))
    assert artefact.references == (f"{OF}categoryscheme.CategoryScheme=X:CATS(1.2)",)


def test_the_enumeration_of_a_measure_dimension_is_a_concept_scheme_and_no_other_is():
    def component(name: str, identifier: str) -> str:
        enumeration = f'<str:Enumeration><Ref id="{identifier}" agencyID="X"/></str:Enumeration>'
        return f'<str:{name} id="{name}"><str:LocalRepresentation>{enumeration}</str:LocalRepresentation></str:{name}>'

    components = component("Dimension", "A") + component("MeasureDimension", "B") + component("Attribute", "C")
    structure = f'<str:DataStructure id="D" agencyID="X">{components}</str:DataStructure>'
    [artefact] = artefacts(structures.ml("2.1", ("DataStructures", structure)))
    assert artefact.references == (
        f"{OF}codelist.Codelist=X:A(1.0)",
        f"{OF}codelist.Codelist=X:C(1.0)",
        f"{OF}conceptscheme.ConceptScheme=X:B(1.0)",
    )


def test_references_are_the_same_in_whatever_pieces_a_message_comes():
    class ByteByByte(BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(1)

    concept = '<Ref id="F" maintainableParentID="CS" agencyID="X"></Ref>'
    dimension = f'<str:Dimension id="F"><str:ConceptIdentity>{concept}</str:ConceptIdentity></str:Dimension>'
    structure = f'<str:DataStructure id="D" agencyID="X">{dimension}</str:DataStructure>'
    # The first 4 kB are read at once, to know what they are.
    message = structures.ml("2.1", ("DataStructures", structure), prolog=f"<!--{'-=' * 2500}-->")
    [artefact] = split(ByteByByte(message.encode()))
    assert artefact.references == (f"{OF}conceptscheme.ConceptScheme=X:CS(1.0)",)
    assert artefact.content_hash == artefacts(message)[0].content_hash


@pytest.mark.parametrize("many_names", [0, 4_000])
def test_maps_of_a_structure_set_refer_to_what_they_map(many_names):
    def mapped(name: str, source: str, target: str) -> str:
        ends = (("Source", source), ("Target", target))
        pair = "".join(f'<str:{end}><Ref id="{each}" agencyID="X"/></str:{end}>' for end, each in ends)
        return f'<str:{name} id="{name}">{names}{pair}</str:{name}>'

    # So many that what is read at once ends between a map and what it maps.
    names = '<com:Name xml:lang="en">Codes of then and now</com:Name>' * many_names
    maps = (
        mapped("CodelistMap", "A", "B") + mapped("ConceptSchemeMap", "C", "D") + mapped("CategorySchemeMap", "E", "F")
    )
    structure_set = f'<str:StructureSet id="S" agencyID="X">{maps}</str:StructureSet>'
    [artefact] = artefacts(structures.ml("2.1", ("StructureSets", structure_set)))
    assert artefact.references == (
        f"{OF}categoryscheme.CategoryScheme=X:E(1.0)",
        f"{OF}categoryscheme.CategoryScheme=X:F(1.0)",
        f"{OF}codelist.Codelist=X:A(1.0)",
        f"{OF}codelist.Codelist=X:B(1.0)",
        f"{OF}conceptscheme.ConceptScheme=X:C(1.0)",
        f"{OF}conceptscheme.ConceptScheme=X:D(1.0)",
    )


def test_references_of_3_are_urns():
    [artefact] = artefacts(structures.ml("3.0", ("Dataflows", structures.DATAFLOW_3)))
    assert artefact.references == (f"{OF}datastructure.DataStructure=ECB:ECB_EXR1(2.0+.0)",)


def test_references_of_2_0_are_attributes_and_elements():
    message = structures.ml("2.0", ("KeyFamilies", structures.KEY_FAMILY_2_0), ("Dataflows", structures.DATAFLOW_2_0))
    assert [artefact.references for artefact in artefacts(message)] == [
        (
            f"{OF}codelist.Codelist=BIS:CL_FREQ(1.0)",
            f"{OF}codelist.Codelist=IMF:CL_AREA(1.2)",
            f"{OF}conceptscheme.ConceptScheme=SDMX:CONCEPTS(1.0)",
        ),
        (f"{OF}datastructure.DataStructure=BIS:DEBT(1.3)",),
    ]


def test_urns_of_items_and_of_the_artefact_itself_are_no_references():
    own = f"{OF}codelist.Code=SDMX:CL_SEX(2.1)"
    codelist = structures.CODELIST_2_1.replace('id="M"', f'id="M" urn="{own}.M"').replace(
        'id="F"', 'id="F" urn="urn:x"'
    )
    [artefact] = artefacts(structures.ml("3.0", ("Codelists", codelist)))
    assert artefact.references == ()


@pytest.mark.parametrize("cut", [10, 300, -30, -3])
def test_a_message_that_ends_in_the_middle_is_an_error_after_what_was_whole(cut):
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1))
    with pytest.raises(StructureMessageError, match=r"broken at line \d+, column \d+.*not deleted"):
        artefacts(message[:cut])


def test_what_was_whole_before_an_error_is_given():
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1))
    found = parts(message.replace("</str:Dataflow>", "</str:Wrong>"))
    assert next(found).content == structures.CODELIST_2_1.encode()
    with pytest.raises(StructureMessageError, match="mismatched tag"):
        next(found)


def test_findings_are_not_more_than_can_be_read():
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)).replace(
        "</mes:Header>", "</mes:Header>" + "<o/>" * 5000
    )
    found = parts(message)
    assert len(list(found)) == 1
    assert len(found.findings) == 1001
    assert found.findings[-1].message == "there is more than these 1,000 findings"


def test_schemes_that_an_agency_has_one_of_need_neither_id_nor_version():
    [artefact] = artefacts(structures.ml("3.0", ("AgencySchemes", '<str:AgencyScheme agencyID="X" version="7.0.0"/>')))
    assert (artefact.urn, artefact.id, artefact.version) == (
        f"{OF}base.AgencyScheme=X:AGENCIES(1.0)",
        "AGENCIES",
        "1.0",
    )


def test_entities_are_never_declared():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'
    with pytest.raises(StructureMessageError, match="DOCTYPE"):
        artefacts(structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), prolog=bomb))


@pytest.mark.parametrize("element", ["str:Codelist", "mes:Header", "mes:Odd"])
def test_depth_is_limited(element):
    deep = "<str:a>" * 201 + "</str:a>" * 201
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    place = {"str:Codelist": "<str:Codelists>", "mes:Header": "<mes:Header>", "mes:Odd": "</mes:Header>"}[element]
    around = f'<str:Codelist id="A">{deep}</str:Codelist>' if element == "str:Codelist" else deep
    with pytest.raises(LimitExceededError, match="nested deeper than 200"):
        artefacts(message.replace(place, place + around, 1))


def test_the_size_of_an_artefact_is_limited_before_it_is_at_its_end():
    stream = Endless(structures.ml("2.1", ("Codelists", '<str:Codelist id="A">')).partition("</str:Codelists>")[0])
    with pytest.raises(LimitExceededError, match="an artefact is larger than 1,000,000"):
        list(split(stream, limits=Limits(artefact_bytes=1_000_000)))
    assert stream.given < 2_000_000


def test_the_size_of_what_is_between_artefacts_is_limited():
    stream = Endless('<?xml version="1.0"?><!-- ')
    with pytest.raises(LimitExceededError, match="between two artefacts is larger than 100,000"):
        list(split(stream, limits=Limits(envelope_bytes=100_000)))
    assert stream.given < 1_000_000


def test_the_size_of_the_message_is_limited():
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    with pytest.raises(LimitExceededError, match="the message is larger than 500"):
        list(parts(message, Limits(message_bytes=500)))


def test_a_long_tag_is_read_in_pieces_that_grow():
    class Counting(BytesIO):
        asked = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.asked += 1
            return super().read(size)

    codelist = f'<str:Codelist id="A" agencyID="X"><str:Code id="{"x" * 8_000_000}"/></str:Codelist>'
    stream = Counting(structures.ml("2.1", ("Codelists", codelist)).encode())
    [artefact] = split(stream)
    assert artefact.size == len(codelist)
    assert stream.asked < 15


class Endless:
    """A message that goes on for ever."""

    def __init__(self, beginning: str) -> None:
        self.given = 0
        self._next = beginning.encode()

    def read(self, size: int, /) -> bytes:
        piece, self._next = self._next, b"x" * size
        self.given += len(piece)
        return piece


def fields(artefact: Artefact) -> dict[str, object]:
    return {name: getattr(artefact, name) for name in Artefact.__dataclass_fields__}
