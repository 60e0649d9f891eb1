"""Which expectations a publication of a registry has."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from builders.registry_publication import registry_publication
from spark_jobs.quality.columns import column_names
from spark_jobs.quality.suite import TOPICS, VERSION, suite
from spark_jobs.quality.summary import StructureSummary

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_publication_that_says_nothing_has_the_expectations_that_always_hold() -> None:
    assert [(expected.name, expected.severity) for expected in suite(registry_publication())] == [
        ("volume", "critical"),
        ("quarantined-share", "critical"),
        ("accepted-share", "warning"),
        ("dangling-reference", "warning"),
        ("version-order", "warning"),
        ("final-content", "warning"),
        ("count-mismatch", "warning"),
        ("unique-urn", "critical"),
        ("urn-present", "critical"),
        ("kind-present", "critical"),
        ("known-kind", "info"),
        ("version-syntax", "warning"),
        ("topic-name", "critical"),
    ]


def test_a_sequence_of_changes_may_have_one_structure_twice() -> None:
    names = [expected.name for expected in suite(registry_publication(), in_turn=True)]
    assert "unique-urn" not in names
    assert "urn-present" in names


def test_what_was_chosen_to_be_tried_again_says_nothing_of_the_registry() -> None:
    assert [expected.on for expected in suite(registry_publication(), of_snapshot=False)] == ["structures"] * 5


def test_rules_about_all_that_is_held_are_as_grave_as_the_publication_says() -> None:
    rules = {"dangling-reference": "error", "version-order": "off", "final-content": "error"}
    expected = {each.name: (each.severity, each.kwargs) for each in suite(registry_publication(rules=rules))}
    assert expected["dangling-reference"] == ("critical", {"column": "dangling-reference", "max_value": 0})
    assert expected["final-content"] == ("critical", {"column": "final-content", "max_value": 0})
    assert expected["count-mismatch"] == ("warning", {"column": "count-mismatch", "max_value": 0})
    assert "version-order" not in expected


def test_some_dangling_references_are_let_pass() -> None:
    by_name = {each.name: each for each in suite(registry_publication())}
    assert by_name["dangling-reference"].kwargs == {"column": "dangling_share", "max_value": 0.01}
    assert by_name["dangling-reference"].description == (
        "at most 0.01 of the structures refer to something that is not stored"
    )


def test_what_is_selected_by_agency_and_kind_is_expected_to_be_that() -> None:
    publication = registry_publication(("Codelist=ECB,ECB.*:*(*)", "Dataflow=BIS:*(*)"))
    expected = {each.name: each for each in suite(publication)}
    agency = expected["selected-agency"]
    assert agency.description == "every structure is one of BIS or ECB or ECB.*"
    pattern = str(agency.kwargs["regex"])
    assert [name for name in ("ECB", "ECB.X", "BIS", "ECBX", "BIS.X", "IMF") if re.match(pattern, name)] == [
        "ECB",
        "ECB.X",
        "BIS",
    ]
    assert expected["selected-kind"].kwargs["value_set"] == [
        "Codelist",
        "Dataflow",
        "GeoGridCodelist",
        "GeographicCodelist",
    ]


@pytest.mark.parametrize("select", [(), ("*",), ("*=*:*(1.0)", "Codelist=ECB:*(*)")])
def test_where_anything_is_selected_nothing_is_expected_of_it(select: tuple[str, ...]) -> None:
    names = [expected.name for expected in suite(registry_publication(select))]
    assert not {"selected-agency", "selected-kind"} & set(names)


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ("1", True),
        ("1.0", True),
        ("2.3.1", True),
        ("2.3.1-draft.2", True),
        ("1.2.3.4", True),
        ("2.3-draft", False),
        ("*", False),
        ("1.0+", False),
        ("", False),
        ("1.", False),
    ],
)
def test_versions_are_made_of_numbers(version: str, fits: bool) -> None:
    assert (re.match(VERSION, version) is not None) is fits


@pytest.mark.parametrize(
    ("topics", "fits"),
    [
        ("", True),
        ("FOO", True),
        ("FOO,BAR", True),
        ("FOO,..", False),
        (".", False),
        ("..a", True),
        ("a b", False),
        ("a,", False),
        ("a" * 249, True),
        ("a" * 250, False),
    ],
)
def test_topics_are_legal_names(topics: str, fits: bool) -> None:
    assert (re.match(TOPICS, topics) is not None) is fits


def test_columns_of_structures_are_never_taken_for_attributes() -> None:
    own = {"name": "ExpectColumnValuesToNotBeNull", "on": "structures", "kwargs": {"column": "urn"}}
    publication = registry_publication(expectations=[{**own, "where": "type_a = 1"}])
    assert column_names(publication) == {}
    [expected] = [each for each in suite(publication) if each.own]
    assert (expected.on, expected.kwargs, expected.where) == ("structures", {"column": "urn"}, "type_a = 1")


def summary(**counts: object) -> StructureSummary:
    good: dict[str, object] = {
        "read": 100,
        "accepted": 100,
        "quarantined": 0,
        "in_source": 100,
        "unchanged": 0,
        "newest_modified_at": None,
        "reference_time": NOON,
    }
    return StructureSummary(**(good | counts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "column", "value", "shown"),
    [
        ({}, "accepted_share", 1.0, "100 of 100 structures (100.00%)"),
        ({"accepted": 0, "read": 0}, "accepted_share", 1.0, "0 of 0 structures (100.00%)"),
        (
            {"accepted": 70, "quarantined": 10, "inexpressible": 20},
            "accepted_share",
            0.7,
            "70 of 100 structures (70.00%)",
        ),
        ({}, "dangling_share", 0.0, "0 of 100 structures"),
        ({"warnings_by_rule": {"dangling-reference": 3}}, "dangling_share", 0.03, "3 of 100 structures"),
        ({"warnings_by_rule": {"version-order": 2}}, "version-order", 2, "2 found"),
        ({"of_snapshot": {"final-content": 1}}, "final-content", 1, "1 found"),
        ({"warnings_by_rule": {"count-mismatch": 4}}, "count-mismatch", 4, "4 too many or too few"),
        ({}, "count-mismatch", 0, "0 too many or too few"),
        ({"in_source": None}, "count-mismatch", None, "not known"),
        ({"in_source": None}, "in_source", None, "not known"),
        ({}, "in_source", 100, "100 in the source"),
    ],
)
def test_counts_are_described_in_words(counts: dict[str, object], column: str, value: float | None, shown: str) -> None:
    assert (summary(**counts).row()[column], summary(**counts).observed(column)) == (value, shown)
