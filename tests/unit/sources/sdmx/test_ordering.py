"""The order of structures: what is referred to comes first, and the order is always the same."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from builders import structures
from contexture.sources.sdmx import reference_order, split

MODEL = "urn:sdmx:org.sdmx.infomodel."
AGENCIES = MODEL + "base.AgencyScheme=SDMX:AGENCIES(1.0)"
CODES = MODEL + "codelist.Codelist=ECB:CL_FREQ(1.0)"
CONCEPTS = MODEL + "conceptscheme.ConceptScheme=ECB:CS(1.0)"
STRUCTURE = MODEL + "datastructure.DataStructure=ECB:EXR(1.0)"
FLOW = MODEL + "datastructure.Dataflow=ECB:EXR(1.0)"
CONSTRAINT = MODEL + "registry.DataConstraint=ECB:C(1.0)"


def codelist(version: str, identifier: str = "CL") -> str:
    return f"{MODEL}codelist.Codelist=ECB:{identifier}({version})"


def order(references: dict[str, list[str]]) -> list[str]:
    return list(reference_order(references).urns)


def test_what_is_referred_to_comes_first_and_is_deleted_last():
    references = {
        CONSTRAINT: [FLOW],
        FLOW: [STRUCTURE],
        STRUCTURE: [CODES, CONCEPTS],
        CONCEPTS: [CODES],
        CODES: [],
        AGENCIES: [],
    }
    found = reference_order(references)
    assert found.urns == (AGENCIES, CODES, CONCEPTS, STRUCTURE, FLOW, CONSTRAINT)
    assert found.deletions == (CONSTRAINT, FLOW, STRUCTURE, CONCEPTS, CODES, AGENCIES)
    assert found.cycles == ()


def test_a_reference_beats_the_usual_order_of_kinds():
    assert order({CODES: [CONSTRAINT], CONSTRAINT: []}) == [CONSTRAINT, CODES]


def test_without_references_kind_agency_id_and_version_decide():
    urns = [
        codelist("10.0"),
        codelist("9.0"),
        codelist("9.0.0"),
        codelist("final"),
        codelist("1.0", "A"),
        FLOW,
        "strange",
    ]
    expected = [codelist("1.0", "A"), codelist("final"), codelist("9.0"), codelist("9.0.0"), codelist("10.0")]
    assert order({urn: [] for urn in urns}) == [*expected, FLOW, "strange"]


def test_a_late_bound_version_is_the_latest_that_fits():
    lists = {codelist(version): [] for version in ("1.0.0", "1.2.0", "1.3.0-draft", "2.0.0")}
    flow_first = {version: [FLOW] for version in lists}
    assert order({**lists, FLOW: [codelist("1.0+.0")]})[:4] == list(lists)
    for reference, meant in {
        "1.0+.0": "1.2.0",
        "1.0+": "1.2.0",
        "1~.0.0": "2.0.0",
        "1.0~.0": "1.3.0-draft",
        "~": "2.0.0",
    }.items():
        # Everything refers to the flow, so that only what the flow refers to makes a cycle with it.
        assert reference_order({**flow_first, FLOW: [codelist(reference)]}).cycles == ((codelist(meant), FLOW),)


def test_a_version_for_all_or_an_unreadable_one_is_any():
    lists = {codelist("1.0"): [FLOW], codelist("2.0"): [FLOW]}
    for reference in ("*", "1+.0+.0"):
        assert reference_order({**lists, FLOW: [codelist(reference)]}).cycles == ((*lists, FLOW),)


def test_a_reference_may_have_wildcards_for_agency_and_id():
    later = MODEL + "codelist.Codelist=BIS:A(1.0)"
    references = {
        CODES: [MODEL + "codelist.Codelist=BIS:*(*)"],
        later: [],
        AGENCIES: [MODEL + "codelist.Codelist=*:A(~)"],
    }
    assert order(references) == [later, AGENCIES, CODES]


def test_a_version_is_found_however_it_is_written():
    assert order({CODES: [codelist("1.03")], codelist("1.3"): []}) == [codelist("1.3"), CODES]


def test_what_is_not_there_and_what_an_artefact_says_of_itself_does_not_matter():
    found = reference_order({CODES: [CODES, FLOW, "strange"], codelist("1.1.0"): [codelist("1.0+.0")]})
    assert found.urns == (codelist("1.1.0"), CODES)
    assert found.cycles == ()


def test_a_cycle_is_reported_and_what_is_around_it_stays_in_order():
    references = {CODES: [], CONCEPTS: [CODES, STRUCTURE], STRUCTURE: [CONCEPTS], FLOW: [STRUCTURE], AGENCIES: [FLOW]}
    found = reference_order(references)
    assert found.urns == (CODES, CONCEPTS, STRUCTURE, FLOW, AGENCIES)
    assert found.cycles == ((CONCEPTS, STRUCTURE),)


def test_references_may_be_as_deep_as_there_are_structures():
    chain = [codelist("1.0", f"L{number:05d}") for number in range(15_000)]
    references = {urn: [following] for urn, following in pairwise(chain)}
    assert order({**references, chain[-1]: []}) == chain[::-1]


def test_the_references_of_split_artefacts_are_what_orders_them():
    flow = structures.ml(
        "3.0",
        (
            "Dataflows",
            '<str:Dataflow id="F" agencyID="ECB" version="1.0.0"><str:Structure>'
            f"{MODEL}datastructure.DataStructure=ECB:D(1.0+.0)</str:Structure></str:Dataflow>",
        ),
        ("DataStructures", '<str:DataStructure id="D" agencyID="ECB" version="1.2.0"/>'),
    )
    artefacts = list(split(BytesIO(flow.encode())))
    assert order({str(artefact.urn): artefact.references for artefact in artefacts}) == [
        MODEL + "datastructure.DataStructure=ECB:D(1.2.0)",
        MODEL + "datastructure.Dataflow=ECB:F(1.0.0)",
    ]


URNS = [codelist(version, name) for name in "ABCD" for version in ("1.0.0", "1.1.0")]
LATE = [codelist(version, name) for name in "ABCD" for version in ("1.0+.0", "*")]
GRAPHS = st.dictionaries(st.sampled_from(URNS), st.lists(st.sampled_from(URNS + LATE), max_size=4))
FORWARD = st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=20)


@given(FORWARD, st.randoms())
def test_without_cycles_every_reference_is_respected(drawn, random):
    names = [codelist("1.0", f"L{number}") for number in range(len(drawn))]
    random.shuffle(names)
    references = {
        name: [names[other] for other in others if other < number]
        for number, (name, others) in enumerate(zip(names, drawn, strict=True))
    }
    found = reference_order(references)
    assert found.cycles == ()
    assert sorted(found.urns) == sorted(references)
    places = {urn: place for place, urn in enumerate(found.urns)}
    assert all(places[other] < places[urn] for urn, others in references.items() for other in others)


@given(GRAPHS)
def test_with_cycles_every_reference_out_of_a_cycle_is_respected(references):
    found = reference_order(references)
    assert sorted(found.urns) == sorted(references)
    places = {urn: place for place, urn in enumerate(found.urns)}
    cycle = {urn: number for number, urns in enumerate(found.cycles) for urn in urns}
    for urn, others in references.items():
        for other in others:
            if other in places and other != urn and cycle.get(urn, urn) != cycle.get(other, other):
                assert places[other] < places[urn]


@given(GRAPHS, st.randoms())
def test_the_order_does_not_depend_on_the_order_of_anything(references, random):
    urns = random.sample(list(references), len(references))
    shuffled = {urn: random.sample(references[urn], len(references[urn])) for urn in urns}
    assert reference_order(shuffled) == reference_order(references)
