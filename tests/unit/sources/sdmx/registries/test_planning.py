"""Which questions cover a selection."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders.registry import EXR, urn
from contexture.sources.sdmx.registry import StructureQuery
from contexture.sources.sdmx.registry.rest import plan_queries


def test_an_agencys_code_lists_are_asked_for_together_where_there_are_some():
    assert plan_queries([urn("CL_A"), urn("CL_B"), urn("CL_C"), urn("CL_D", "2.0"), EXR]) == (
        StructureQuery("Codelist", "X"),
        StructureQuery("Dataflow", "ECB", "EXR", "1.0"),
    )


def test_a_few_are_asked_for_one_by_one():
    assert plan_queries([urn("CL_A"), urn("CL_B", agency="Y")]) == (
        StructureQuery("Codelist", "X", "CL_A", "1.0"),
        StructureQuery("Codelist", "Y", "CL_B", "1.0"),
    )


def test_a_whole_agency_is_not_read_for_a_small_part_of_it():
    held = [urn(f"CL_{number}") for number in range(100)]
    assert len(plan_queries(held[:10], held)) == 10
    assert plan_queries(held[:50], held) == (StructureQuery("Codelist", "X"),)


URNS = st.lists(
    st.builds(
        urn, st.sampled_from(["CL_A", "CL_B", "CL_C"]), st.sampled_from(["1.0", "2.0", "3.0"]), st.sampled_from("XY")
    ),
    unique=True,
)


@given(wanted=URNS, held=URNS)
def test_every_structure_is_covered_once(wanted: list[str], held: list[str]):
    covering = [[query for query in plan_queries(wanted, held) if _covers(query, one)] for one in wanted]
    assert [len(queries) for queries in covering] == [1] * len(wanted)


def _covers(query: StructureQuery, one: str) -> bool:
    named = f"{query.kind}={query.agency}:{query.id}({query.version})"
    return one.endswith(named) or (query.id == "*" and f".{query.kind}={query.agency}:" in one)
