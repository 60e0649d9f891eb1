"""Selectors: what they say, which structures they mean, and what is said of those that can't be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.sources.sdmx import Selector, SelectorError, Urn, select_structures

MODEL = "urn:sdmx:org.sdmx.infomodel."
FREQ_1 = MODEL + "codelist.Codelist=SDMX:CL_FREQ(1.0)"
FREQ_2 = MODEL + "codelist.Codelist=SDMX:CL_FREQ(2.0)"
AREA = MODEL + "codelist.Codelist=ECB:CL_AREA(1.0.0)"
AREA_DRAFT = MODEL + "codelist.Codelist=ECB:CL_AREA(1.1.0-draft)"
AREA_STATISTICS = MODEL + "codelist.Codelist=ECB.STA:CL_AREA(1.0.0)"
AREA_BELOW = MODEL + "codelist.Codelist=ECB.STA.EXT:CL_AREA(1.0.0)"
VALUES = MODEL + "codelist.ValueList=ECB:VL(1.0)"
FLOW = MODEL + "datastructure.Dataflow=ECB:EXR(1.0)"
TEMPLATE = "urn:sdmx:com.example.registry.ReportingTemplate=ECB:T(1.0)"
HELD = (FREQ_1, FREQ_2, AREA, AREA_DRAFT, AREA_STATISTICS, AREA_BELOW, VALUES, FLOW, TEMPLATE)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("*", HELD),
        ("*=*:*(*)", HELD),
        ("Codelist=ECB:*(*)", (AREA, AREA_DRAFT)),
        ("codelist=ECB:*(*)", (AREA, AREA_DRAFT)),
        ("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:*(*)", (AREA, AREA_DRAFT)),
        ("urn:sdmx:com.example.registry.ReportingTemplate=*:*(*)", (TEMPLATE,)),
        ("urn:sdmx:com.example.other.ReportingTemplate=*:*(*)", ()),
        ("ReportingTemplate=*:*(*)", (TEMPLATE,)),
        ("Codelist,ValueList=ECB:*(*)", (AREA, AREA_DRAFT, VALUES)),
        ("*=ECB:*(*)", (AREA, AREA_DRAFT, VALUES, FLOW, TEMPLATE)),
        ("*=ECB.*:*(*)", (AREA_STATISTICS, AREA_BELOW)),
        ("*=ECB.STA:*(*)", (AREA_STATISTICS,)),
        ("*=ECB.STA.*:*(*)", (AREA_BELOW,)),
        ("Codelist=ECB, ECB.*:*(*)", (AREA, AREA_DRAFT, AREA_STATISTICS, AREA_BELOW)),
        ("*=*:CL_FREQ,EXR(*)", (FREQ_1, FREQ_2, FLOW)),
        ("*=*:CL_AREA(1.0.0)", (AREA, AREA_STATISTICS, AREA_BELOW)),
        ("*=SDMX,ECB:*(~)", (FREQ_2, AREA_DRAFT, VALUES, FLOW, TEMPLATE)),
        ("*=*:*(+)", (AREA, AREA_STATISTICS, AREA_BELOW)),
        ("Codelist=*:*(1.0+.0,1.0)", (FREQ_1, AREA, AREA_STATISTICS, AREA_BELOW)),
        ("Codelist=BIS:*(*)", ()),
    ],
)
def test_a_selector_means_some_of_what_a_registry_holds(selector, meant):
    assert Selector.parse(selector).select(HELD) == meant


def test_a_version_is_the_latest_of_its_own_artefact_only():
    assert Selector.parse("Codelist=*:CL_AREA(~)").select(HELD) == (AREA_DRAFT, AREA_STATISTICS, AREA_BELOW)


def test_a_selector_of_the_latest_is_about_every_version_that_could_be_it():
    selector = Selector.parse("Codelist=ECB:*(1.0+.0)")
    assert selector.matches(AREA)
    assert not selector.matches(AREA_DRAFT)
    assert not selector.matches(FREQ_1)


def test_an_item_is_taken_for_the_artefact_that_holds_it():
    assert Selector.parse("Codelist=SDMX:CL_FREQ(1.0)").matches(MODEL + "codelist.Code=SDMX:CL_FREQ(1.0).A")


def test_what_is_no_urn_is_never_meant():
    assert not Selector.parse("*").matches("CL_FREQ")


def test_several_selectors_mean_what_any_of_them_means():
    selectors = [Selector.parse("Dataflow=*:*(*)"), Selector.parse("*=SDMX:*(~)"), Selector.parse("*=SDMX:*(*)")]
    assert select_structures(selectors, HELD) == (FREQ_1, FREQ_2, FLOW)
    assert select_structures([], HELD) == HELD


@pytest.mark.parametrize(
    ("selector", "character", "hint"),
    [
        ("", 1, "write the kind and =, as in Codelist=ECB:*(*)"),
        ("Codelist", 9, "write the kind and =, as in Codelist=ECB:*(*)"),
        ("Codelist=ECB", 13, "write the agency and a colon after the =, as in Codelist=ECB:*(*)"),
        ("Codelist=ECB:*", 15, "end with the version in brackets, (*) for all or (~) for the latest"),
        ("Codelist=ECB:*(1.0", 19, "close the bracket behind the version"),
        ("Codelist=ECB:*(1.0).A", 20, "leave it out; items cannot be selected"),
        ("Codlist=ECB:*(*)", 1, "did you mean Codelist"),
        ("Codelist,DataFlw=ECB:*(*)", 10, "did you mean Dataflow"),
        ("Code=ECB:*(*)", 1, "select the Codelist that holds it"),
        ("*,Codelist=ECB:*(*)", 1, "write * alone, or leave it out"),
        ("Zebra=ECB:*(*)", 1, "write a class as in URNs, such as Codelist, or *"),
        ("GeographicCodelist=ECB:*(*)", 1, "write Codelist"),
        (
            "urn:sdmx:org.sdmx.infomodel.base.Codelist=ECB:*(*)",
            1,
            "write Codelist, or urn:sdmx:org.sdmx.infomodel.codelist.Codelist",
        ),
        ("urn:sdmx:Thing=ECB:*(*)", 1, "write urn:sdmx:model.package.Class"),
        ("Codelist=ECB, 4F:*(*)", 15, "write one such as ECB or ECB.STA, ECB.* for those below, or * alone"),
        ("Codelist=ECB:CL_*(*)", 14, "write a whole one, several with commas, or * alone"),
        ("Codelist=ECB:a: b(*)", 14, "write a whole one, several with commas, or * alone"),
        ("Codelist=ECB:*(1.0,2+)", 20, "write two or three numbers, one of them with + ~ or *, as in 2.3+.1"),
        ("Codelist=ECB:*()", 16, "write one such as 1.0 or 2.3.1, or *, ~, +, 2.3+.1"),
    ],
)
def test_what_can_not_be_read_is_shown_with_what_to_write(selector, character, hint):
    with pytest.raises(SelectorError) as raised:
        Selector.parse(selector)
    assert raised.value.context["character"] == character
    assert f"at character {character}: " in raised.value.message
    assert raised.value.next_step == hint


KINDS = st.sampled_from(["Codelist", "Dataflow", "ValueList"])
AGENCIES = st.sampled_from(["ECB", "ECB.STA", "BIS"])
URNS = st.builds(Urn.of, KINDS, AGENCIES, st.sampled_from(["A", "B"]), st.sampled_from(["1.0", "1.0.0", "1.2.0-draft"]))


@given(URNS)
def test_the_urn_of_an_artefact_is_a_selector_of_it_alone(urn):
    assert Selector.parse(str(urn)).select([str(urn), FREQ_1, FLOW]) == (str(urn),)


@given(st.lists(URNS.map(str), unique=True), st.sampled_from(["~", "+", "*", "1.0+.0", "1.0"]), st.randoms())
def test_the_selection_does_not_depend_on_the_order_of_what_is_held(urns, version, random):
    selector = Selector.parse(f"*=*:*({version})")
    shuffled = random.sample(urns, len(urns))
    assert set(selector.select(urns)) == set(selector.select(shuffled))
    assert all(selector.matches(urn) for urn in selector.select(urns))
