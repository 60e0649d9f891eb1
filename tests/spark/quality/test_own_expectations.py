"""What a publication's author adds in Great Expectations' words, right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contexture.publications import Publication
from contexture.publications.quality import ARGUMENTS, COMMON, Expectation
from spark_jobs.quality.summary import RunSummary

pytestmark = pytest.mark.spark

OWN = [
    {
        "name": "expect_column_values_to_be_between",
        "where": "type = 'bus' and value_speed > 0",
        "kwargs": {"column": "value_speed", "max_value": 100},
    },
    {"name": "ExpectColumnMaxToBeBetween", "kwargs": {"column": "value_speed", "max_value": 200, "severity": "info"}},
    {"name": "ExpectColumnValuesToBeInSet", "kwargs": {"column": "topic", "value_set": [1], "severity": "warning"}},
    {"name": "ExpectWonders", "kwargs": {"severity": "warning"}},
    {"name": "ExpectColumnValuesToBeBetween", "kwargs": {"column": "value_speed", "maximum": 3, "severity": "warning"}},
    {"name": "ExpectColumnValuesToNotBeNull", "kwargs": {"column": "id", "severity": "warning"}, "where": "id ~ 1"},
    {"name": "ExpectColumnValuesToNotBeNull", "kwargs": {"column": "colour", "severity": "warning"}},
]


@pytest.fixture(scope="module")
def own(judged: Any, publication: Publication, car: Callable[..., dict[str, Any]], good_run: RunSummary) -> Any:
    # A file with the wrong ones among them is refused when it is loaded; the run has to bear them all the same.
    quality = publication.quality.model_copy(update={"expectations": tuple(map(Expectation.model_validate, OWN))})
    rows = [car("car1"), car("car2", value_speed=250.0), car("bus1", type="bus", value_speed=101.0)]
    return judged(publication.model_copy(update={"quality": quality}), rows, good_run)


def test_an_expectation_of_the_author_s_own_is_judged_on_the_rows_it_selects(own: Any) -> None:
    result = own["own-1:expect_column_values_to_be_between"]
    assert (result.success, result.severity, result.observed) == (False, "critical", "1 of 1 rows break it")
    assert not own.verdict.approved


def test_an_expectation_about_the_whole_column_shows_what_it_saw(own: Any) -> None:
    result = own["own-2:ExpectColumnMaxToBeBetween"]
    assert (result.success, result.severity, result.observed) == (False, "info", "observed 250.0")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("own-3:ExpectColumnValuesToBeInSet", "CAST_INVALID_INPUT"),
        ("own-4:ExpectWonders", "Great Expectations has no ExpectWonders"),
        ("own-5:ExpectColumnValuesToBeBetween", "maximum"),
        ("own-6:ExpectColumnValuesToNotBeNull", "PARSE_SYNTAX_ERROR"),
        ("own-7:ExpectColumnValuesToNotBeNull", "colour"),
    ],
)
def test_an_expectation_that_can_not_be_judged_counts_as_failed_and_says_why(own: Any, name: str, reason: str) -> None:
    result = own[name]
    assert (result.success, result.severity, result.observed) == (False, "warning", "could not be checked")
    assert reason in (result.raised or "")


def test_one_that_raises_takes_no_other_with_it(own: Any) -> None:
    assert [result.name for result in own.verdict.results if result.success and not result.raised] == [
        "volume",
        "quarantined-share",
        "count-zero",
        "freshness",
        "unique-identity",
        "id-present",
        "type-present",
        "known-type",
        "service-path",
        "topic-name",
        "not-in-the-future",
        "required-attribute:brand",
        "attribute-type:speed",
        "range:speed",
    ]


def test_the_page_distinguishes_an_error_of_the_author_s_from_bad_data(own: Any) -> None:
    assert "Correct it in the publication" in own.page


def test_the_table_of_expectations_is_that_of_the_installed_version() -> None:
    """`contexture check` knows them by it, without Great Expectations."""
    import great_expectations.expectations as gxe
    from great_expectations.expectations.expectation import Expectation as Base

    # What we set ourselves, or what every expectation has.
    ours = {*Base.__fields__, "batch_id", "row_condition", "condition_parser", "library_metadata", *COMMON}
    found = {}
    for name, kind in vars(gxe).items():
        # A query of one's own is no expectation by name and arguments.
        if name.startswith("Expect") and isinstance(kind, type) and issubclass(kind, Base) and kind is not Base:
            fields = {field: spec.required for field, spec in kind.__fields__.items() if field not in ours}
            needed = {field for field, required in fields.items() if required}
            found[name] = (needed, fields.keys() - needed)
    assert {name: (set(needed), set(further)) for name, (needed, further) in ARGUMENTS.items()} == found
