"""The real messages of registries against the rules: what each of them breaks, and nothing else."""

from __future__ import annotations

import json
from functools import cache

import pytest

from contexture.sources.sdmx import Artefact, split
from contexture.sources.sdmx.rules.checks import check
from contexture.sources.sdmx.rules.consistency import PublishedStructure, check_consistency, is_final
from samples_location import samples, samples_or_skip

FOLDER = samples()
INDEX = FOLDER / "sdmx" / "expected_urns.json" if FOLDER else None
NAMES = sorted(json.loads(INDEX.read_text())) if INDEX and INDEX.exists() else ["none at hand"]

CONCEPTS_OF_2_0 = [
    "TIME",
    "FREQ",
    "JD_TYPE",
    "JD_CATEGORY",
    "VIS_CTY",
    "AVAILABILITY",
    "COLLECTION",
    "DECIMALS",
    "OBS_CONF",
    "TIME_FORMAT",
    "OBS_STATUS",
    "OBS_PRE_BREAK",
    "BIS_UNIT",
    "UNIT_MULT",
    "OBS_VALUE",
    "STOCKS",
    "FLOWS",
]
BROKEN = {
    "ml20/TWG_StructureSample.xml": [
        ("urn-missing", "error", f"'Concept' '{name}' is not maintainable, so that it has no URN")
        for name in CONCEPTS_OF_2_0
    ],
    "ml30/IMF_STA_DSD_BOP.xml": [
        (
            "schema",
            "warning",
            "line 65: Element 'MetadataAttributeUsage': Missing child element(s). "
            "Expected is ( AttributeRelationship ). (and 4 more)",
        )
    ],
}
DANGLING = {
    "fusion/FMR_vtl_transformationscheme.fusion.json": {
        "transformation.VtlMappingScheme=TEST:TEST_DETAIL(1.0)": (
            "'datastructure.Dataflow=TEST:TEST_DETAIL(1.0)' is not stored"
        )
    },
    "json20/FMR_vtl_transformationscheme.json": {
        "transformation.VtlMappingScheme=TEST:TEST_DETAIL(1.0)": (
            "'datastructure.Dataflow=TEST:TEST_DETAIL(1.0)' is not stored"
        )
    },
    # A slip of those who wrote the sample: the scheme is called ECB_CONCEPTS.
    "json21/TWG_constructed-sample.json": {
        "datastructure.DataStructure=ECB:ECB_EXR1(1.0)": "'conceptscheme.ConceptScheme=ECB:ECB_CONCPTS(1.0)' is not "
        "stored"
    },
    "ml21/ECB_EXR1_structure-full.xml": {
        "categoryscheme.Categorisation=ECB:53A341E8-D48B-767E-D5FF-E2E3E0E2BB19(1.0)": (
            "'categoryscheme.CategoryScheme=ECB:MOBILE_NAVI(1.0)' is not stored"
        )
    },
    "ml21/ECB_structureset.xml": {
        "mapping.StructureSet=ECB:GLOBAL_MAPPINGS(1.0)": (
            "'codelist.Codelist=ECB:CL_AREA_EE(1.0)' is not stored (and 1 more)"
        )
    },
    "ml30/IMF_STA_DSD_BOP.xml": {
        "conceptscheme.ConceptScheme=IMF:CS_MASTER(2.2.0)": (
            "'codelist.Codelist=IMF:CL_ACCESS_SHARING_LEVEL(1.0+.0)' is not stored (and 7 more)"
        ),
        "conceptscheme.ConceptScheme=IMF:CS_MASTER_DOMAIN(1.0.0)": (
            "'codelist.Codelist=IMF:CL_ACCOUNTING_ENTRY(2.0+.0)' is not stored (and 22 more)"
        ),
        "conceptscheme.ConceptScheme=IMF:CS_MASTER_DATA(1.0.0)": (
            "'codelist.Codelist=IMF:CL_CIVIL_STATUS(1.0+.0)' is not stored (and 12 more)"
        ),
        "conceptscheme.ConceptScheme=IMF:CS_MASTER_SYSTEM(1.0.2)": (
            "'codelist.Codelist=IMF:CL_DECIMALS(1.0+.0)' is not stored (and 2 more)"
        ),
        "conceptscheme.ConceptScheme=IMF.STA:CS_BOP(17.0.0)": (
            "'codelist.Codelist=IMF.STA:CL_BOP_ACCOUNTING_ENTRY(3.0+.0)' is not stored (and 6 more)"
        ),
    },
    "ml30/pysdmx_maps.xml": {
        "structuremapping.RepresentationMap=ESTAT:REPMAP_SEX(1.0)": (
            "'codelist.Codelist=ESTAT:CL_SEX_V1(1.0)' is not stored (and 1 more)"
        ),
        "structuremapping.RepresentationMap=ESTAT:REPMAP_CURR(1.0)": (
            "'codelist.Codelist=ESTAT:CL_COUNTRY_LOCALCURR(1.0)' is not stored (and 2 more)"
        ),
        "structuremapping.RepresentationMap=ESTAT:REPMAP_SERIES(1.0)": (
            "'codelist.Codelist=ESTAT:CL_INDICATOR_STATUS(1.0)' is not stored (and 2 more)"
        ),
        "structuremapping.RepresentationMap=ESTAT:REPMAP_NN(1.0)": (
            "'codelist.Codelist=ESTAT:CL_FREQ_ADJ(1.0)' is not stored (and 3 more)"
        ),
        "structuremapping.StructureMap=ESTAT:STRMAP_DEMO(1.0)": (
            "'datastructure.DataStructure=ESTAT:DSD_DEMO_V1(1.0)' is not stored (and 1 more)"
        ),
    },
    "ml31/pysdmx_dataflow.xml": {
        "datastructure.Dataflow=ECB:EXR(1.0)": "'datastructure.DataStructure=ECB:EXR(1.0)' is not stored"
    },
}
FINAL = {"ml21/UNICEF_GLOBAL_DATAFLOW.xml": 4, "ml30/IMF_STA_DSD_BOP.xml": 9}


@cache
def artefacts(name: str) -> tuple[Artefact, ...]:
    with (samples_or_skip() / "sdmx" / name).open("rb") as stream:
        return tuple(split(stream))


def published_structures(name: str) -> list[PublishedStructure]:
    named = [each for each in artefacts(name) if each.urn]
    return [PublishedStructure(str(each.urn), each.content_hash, each.references, is_final(each)) for each in named]


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_breaks_these_rules_and_no_others(name: str) -> None:
    violations = [violation for artefact in artefacts(name) for violation in check(artefact)]
    assert [(each.rule, each.severity, each.message) for each in violations] == BROKEN.get(name, [])


@pytest.mark.parametrize("name", NAMES)
def test_each_sample_taken_for_a_registry_lacks_these_structures(name: str) -> None:
    found = {
        broken.urn.removeprefix("urn:sdmx:org.sdmx.infomodel."): broken.violation.message.replace(
            "urn:sdmx:org.sdmx.infomodel.", ""
        )
        for broken in check_consistency(published_structures(name), {})
        if broken.violation.rule == "dangling-reference"
    }
    assert found == DANGLING.get(name, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_that_was_published_breaks_no_rule_when_it_comes_again(name: str) -> None:
    published = {each.urn: each.content_hash for each in published_structures(name)}
    broken = {each.violation.rule for each in check_consistency(published_structures(name), published, in_turn=True)}
    assert broken <= {"dangling-reference"}


@pytest.mark.parametrize("name", NAMES)
def test_a_final_structure_that_changed_is_reported(name: str) -> None:
    published = {each.urn: b"other" for each in published_structures(name)}
    broken = [
        each
        for each in check_consistency(published_structures(name), published)
        if each.violation.rule == "final-content"
    ]
    assert len(broken) == FINAL.get(name, 0)
