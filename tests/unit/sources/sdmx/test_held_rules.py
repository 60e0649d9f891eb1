"""The rules about all that is held, beside what was published before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events.rules import Violation
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.rules.catalogue import StructureRuleOptions, severities
from contexture.sources.sdmx.rules.consistency import ConsistencyViolation, PublishedStructure, check_consistency

OF = "urn:sdmx:org.sdmx.infomodel."
FLOW = f"{OF}datastructure.Dataflow=ECB:EXR(1.0)"
CONCEPTS = f"{OF}conceptscheme.ConceptScheme=ECB:CONCEPTS(1.0)"


def structure(version: str, agency: str = "ECB") -> str:
    return f"{OF}datastructure.DataStructure={agency}:EXR({version})"


def warned(urn: str, rule: str, message: str) -> ConsistencyViolation:
    return ConsistencyViolation(urn, Violation(rule, "warning", message))


def flow(*references: str) -> PublishedStructure:
    return PublishedStructure(FLOW, b"f", references)


@pytest.mark.parametrize(
    ("reference", "held", "dangles"),
    [
        (structure("2.0"), structure("2.0"), False),
        (structure("2.0"), structure("2.0.0"), True),
        (structure("2.0+.0"), structure("2.0.0"), False),
        (structure("2.0+.0"), structure("2.3.1"), False),
        (structure("2.0+.0"), structure("1.9.0"), True),
        (structure("2.0+.0"), structure("2.0.0-draft"), True),
        (structure("~"), structure("0.1.0-draft"), False),
        (structure("*"), structure("1.0"), False),
        (structure("1.0", agency="BIS"), structure("1.0"), True),
    ],
)
def test_a_reference_dangles_if_nothing_that_is_held_fits(reference: str, held: str, dangles: bool) -> None:
    expected = [warned(FLOW, "dangling-reference", f"'{reference}' is not stored")] if dangles else []
    assert check_consistency([flow(reference)], {held: b"x"}) == expected
    assert check_consistency([flow(reference), PublishedStructure(held, b"x")], {}) == expected


def test_what_this_run_deletes_is_held_no_more() -> None:
    new = [flow(structure("2.0"))]
    assert check_consistency(new, {structure("2.0"): b"x"}, gone=[structure("2.0")]) == [
        warned(FLOW, "dangling-reference", f"'{structure('2.0')}' is not stored")
    ]
    assert check_consistency(new, {structure("2.0"): b"x"}, gone=[structure("1.0")]) == []


def test_what_the_registry_shows_is_there_though_it_is_not_published() -> None:
    assert check_consistency([flow(structure("2.0+.0"))], {}, shown=[structure("2.0.0")]) == []


@pytest.mark.parametrize(
    ("select", "dangles"),
    [
        ([], True),
        (["*"], True),
        (["*=ECB:*(*)"], True),
        (["Dataflow=*:*(*)"], False),
        (["*=BIS:*(*)", "Dataflow=ECB:*(*)"], False),
        (["*=*:*(~)"], False),
        (["*=*:*(~)", "DataStructure=*:*(2.0)"], True),
    ],
)
def test_a_reference_to_an_unselected_structure_is_not_checked(select: list[str], dangles: bool) -> None:
    options = StructureRuleOptions(selectors=tuple(map(Selector.parse, select)))
    assert bool(check_consistency([flow(structure("2.0"))], {}, options)) is dangles


@pytest.mark.parametrize(
    ("published", "new", "message"),
    [
        (["1.0"], "1.1", None),
        (["1.9"], "1.10", None),
        (["1.10"], "1.9", "version 1.9 is new, and 1.10 was published before it"),
        (["1.0", "3.0", "2.0"], "2.5", "version 2.5 is new, and 3.0 was published before it"),
        (["2.0.0"], "2.0.0-draft", "version 2.0.0-draft is new, and 2.0.0 was published before it"),
        (["2.0.0-draft"], "2.0.0", None),
        ([], "0.1", None),
    ],
)
def test_a_new_version_comes_after_those_that_were_published(
    published: list[str], new: str, message: str | None
) -> None:
    state = {structure(version): b"x" for version in published} | {structure("9.0", agency="BIS"): b"y"}
    expected = [] if message is None else [warned(structure(new), "version-order", message)]
    assert check_consistency([PublishedStructure(structure(new), b"n")], state) == expected


def test_versions_that_come_together_are_in_no_order() -> None:
    new = [PublishedStructure(structure("2.0"), b"2"), PublishedStructure(structure("1.0"), b"1")]
    assert check_consistency(new, {}) == []
    assert check_consistency(new, {}, in_turn=True) == [
        warned(structure("1.0"), "version-order", "version 1.0 is new, and 2.0 was published before it")
    ]


def test_a_version_that_was_published_before_may_come_again() -> None:
    assert (
        check_consistency(
            [PublishedStructure(structure("1.0"), b"other")], {structure("1.0"): b"x", structure("2.0"): b"y"}
        )
        == []
    )


@pytest.mark.parametrize(
    ("candidate", "is_reported"),
    [
        (PublishedStructure(structure("2.3.1"), b"other"), True),
        (PublishedStructure(structure("2.3.1"), b"same"), False),
        (PublishedStructure(structure("2.3.1-draft"), b"other"), False),
        (PublishedStructure(structure("2.3"), b"other"), False),
        (PublishedStructure(structure("2.3"), b"other", is_final=True), True),
        (PublishedStructure(structure("2.3"), b"same", is_final=True), False),
    ],
)
def test_what_is_final_keeps_its_content(candidate: PublishedStructure, is_reported: bool) -> None:
    version = candidate.urn.rpartition("(")[2].rstrip(")")
    message = f"version {version} is final, and its content is not the one that was published"
    expected = [warned(candidate.urn, "final-content", message)] if is_reported else []
    assert check_consistency([candidate], {candidate.urn: b"same"}) == expected


@pytest.mark.parametrize(
    ("before", "now", "is_reported"),
    [(False, True, False), (True, True, True), (True, False, True), (None, True, True)],
)
def test_what_was_published_as_final_keeps_its_content_and_a_draft_may_be_made_final(
    before: bool | None, now: bool, is_reported: bool
) -> None:
    candidate = PublishedStructure(structure("2.3"), b"other", is_final=now)
    final = {} if before is None else {candidate.urn: before}
    assert bool(check_consistency([candidate], {candidate.urn: b"same"}, final=final)) is is_reported


def test_what_was_made_final_in_this_run_is_final_from_then_on() -> None:
    urn = structure("2.3")
    new = [
        PublishedStructure(urn, b"a"),
        PublishedStructure(urn, b"b", is_final=True),
        PublishedStructure(urn, b"c", is_final=True),
    ]
    broken = check_consistency(new, {urn: b"0"}, final={urn: False}, in_turn=True)
    assert [each.violation.rule for each in broken] == ["final-content"]


def test_changes_in_sequence_are_each_compared_with_the_one_before() -> None:
    new = [
        PublishedStructure(structure("2.3.1"), b"a"),
        PublishedStructure(structure("2.3.1"), b"b"),
        PublishedStructure(structure("2.3.1"), b"b"),
    ]
    assert [broken.violation.rule for broken in check_consistency(new, {}, in_turn=True)] == ["final-content"]


def test_a_publication_says_how_grave_it_is() -> None:
    new = [flow(structure("2.0"), CONCEPTS)]
    errors = StructureRuleOptions(severities=severities({"dangling-reference": "error"}))
    assert check_consistency(new, {}, errors) == [
        ConsistencyViolation(
            FLOW, Violation("dangling-reference", "error", f"'{structure('2.0')}' is not stored (and 1 more)")
        )
    ]
    off = StructureRuleOptions(severities=severities({"dangling-reference": "off"}))
    assert check_consistency(new, {}, off) == []


def test_a_name_that_is_no_urn_is_compared_with_nothing() -> None:
    assert check_consistency([PublishedStructure("T", b"1", ("U",))], {"T": b"2"}) == [
        warned("T", "dangling-reference", "'U' is not stored")
    ]


VERSIONS = st.sampled_from(["1.0", "1.1", "2.0.0", "2.0.0-draft", "2.1.0", "3.0.0"])


@given(st.lists(VERSIONS, unique=True), st.lists(VERSIONS))
def test_repeating_what_was_published_breaks_no_rule(versions: list[str], again: list[str]) -> None:
    state = {structure(version): version.encode() for version in versions}
    new = [
        PublishedStructure(structure(version), version.encode(), tuple(state))
        for version in again
        if version in versions
    ]
    assert check_consistency(new, state, in_turn=True) == []
