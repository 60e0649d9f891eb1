"""URNs by the rules of the information model."""

from __future__ import annotations

import pytest

from contexture.sources.sdmx import Urn


@pytest.mark.parametrize(
    ("kind", "agency", "identifier", "version", "urn"),
    [
        ("Codelist", "SDMX", "CL_FREQ", "2.0", "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_FREQ(2.0)"),
        ("Codelist", "SDMX", "CL_FREQ", None, "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_FREQ(1.0)"),
        ("Dataflow", "ECB.X", "EXR", "1.0.0", "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=ECB.X:EXR(1.0.0)"),
        ("AgencyScheme", "ECB", "AGENCIES", "2.0", "urn:sdmx:org.sdmx.infomodel.base.AgencyScheme=ECB:AGENCIES(1.0)"),
        ("GeographicCodelist", "E", "CL", "1.0", "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=E:CL(1.0)"),
        ("GeoGridCodelist", "E", "CL", "1.0", "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=E:CL(1.0)"),
        ("StructureSet", "E", "S", "1.0", "urn:sdmx:org.sdmx.infomodel.mapping.StructureSet=E:S(1.0)"),
        ("StructureMap", "E", "S", "1.0", "urn:sdmx:org.sdmx.infomodel.structuremapping.StructureMap=E:S(1.0)"),
        ("ContentConstraint", "E", "C", "1.0", "urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=E:C(1.0)"),
        ("ProvisionAgreement", "E", "P", "1.0", "urn:sdmx:org.sdmx.infomodel.registry.ProvisionAgreement=E:P(1.0)"),
    ],
)
def test_a_urn_follows_from_kind_agency_id_and_version(kind, agency, identifier, version, urn):
    assert str(Urn.of(kind, agency, identifier, version)) == urn


def test_a_urn_is_read_into_its_parts():
    text = "urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=ECB.STA:CONCEPTS(1.0+.0).FREQ"
    assert Urn.parse(text) == Urn("conceptscheme", "Concept", "ECB.STA", "CONCEPTS", "1.0+.0", "FREQ")
    assert str(Urn.parse(text)) == text


@pytest.mark.parametrize(
    ("item", "held_by"),
    [
        ("conceptscheme.Concept=E:CS(2.0).FREQ", "conceptscheme.ConceptScheme=E:CS(2.0)"),
        ("codelist.Code=E:CL(1.0).A(1)", "codelist.Codelist=E:CL(1.0)"),
        ("datastructure.TimeDimension=E:D(1.0).TIME", "datastructure.DataStructure=E:D(1.0)"),
        ("codelist.Hierarchy=E:H(1.0).H1", "codelist.HierarchicalCodelist=E:H(1.0)"),
        ("codelist.Hierarchy=E:H(1.0)", "codelist.Hierarchy=E:H(1.0)"),
        ("mapping.CodelistMap=E:S(1.0).M", "mapping.StructureSet=E:S(1.0)"),
        ("base.DataProvider=E:DATA_PROVIDERS(1.0).P", "base.DataProviderScheme=E:DATA_PROVIDERS(1.0)"),
        ("strange.Thing=E:S(1.0).M", "strange.Thing=E:S(1.0)"),
    ],
)
def test_an_item_leads_to_what_holds_it(item, held_by):
    prefix = "urn:sdmx:org.sdmx.infomodel."
    assert str(Urn.parse(prefix + item).maintainable()) == prefix + held_by


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CL_FREQ",
        "urn:sdmx:org.sdmx.infomodel.base.Agency=SDMX",
        "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=A:B",
    ],
)
def test_what_names_no_version_is_no_urn(text):
    with pytest.raises(ValueError, match="not a URN"):
        Urn.parse(text)
