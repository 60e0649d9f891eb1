"""Scores: which checks belong to a dimension, which of them count, and the share that passed."""

from __future__ import annotations

from typing import Any

import pytest

from builders.outboxes import NOON, publication
from contexture.operations.reports.dimensions import checked_rules, dimension_of, score_dimensions
from contexture.operations.reports.model import RunReport
from contexture.publications import Publication
from contexture.publications.quality import RULE_NAMES
from spark_jobs.quality.suite import suite


def run(**changes: Any) -> RunReport:
    values = {
        "outbox": "outbox1", "sequence": 1, "run": "run1", "run_id": None, "mode": "full", "status": "approved",
        "prepared_at": NOON, "received_from": None, "received_to": None, "in_source": 9, "in_source_change": None,
        "read": 9, "accepted": 9, "unchanged": 0, "repeated": 0, "quarantined": 0, "upserts": 9, "deletes": 0,
        "records": 9, "bytes": 9, "topics": 1, "attributes": None, "new_types": (), "approved": True,
        "expectations": (), "rules": (),
    }  # fmt: skip
    return RunReport.model_validate(values | changes)


def expectation(name: str, *, success: bool) -> dict[str, Any]:
    return {
        "name": name, "severity": "warning", "success": success, "on": "entities", "description": "", "observed": "",
    }  # fmt: skip


def rule(name: str) -> dict[str, Any]:
    return {"rule": name, "severity": "warning", "count": 3}


def structures(**message: Any) -> Publication:
    source = {"kind": "sdmx", "connection": "registry", "select": ["Codelist=ECB:*(*)"]}
    topics = {"topics": ["codes"]}
    return Publication.model_validate({"name": "codes", "source": source, "topics": topics, "message": message})


def test_every_rule_belongs_to_a_dimension():
    assert [name for name in RULE_NAMES if dimension_of(name) is None] == []


def test_every_expectation_of_a_suite_belongs_to_a_dimension():
    quality = {
        "required_attributes": ["speed"],
        "attribute_types": {"speed": "Number"},
        "ranges": {"speed": {"minimum": 0}},
        "fresh_within_seconds": 60,
        "rules": {"type-drift": "error", "count-mismatch": "error"},
    }
    expected = [*suite(publication(quality=quality)), *suite(structures())]
    assert [each.name for each in expected if dimension_of(each.name) is None] == []


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("required-attribute:speed", "completeness"),
        ("range:speed", "validity"),
        ("unique-identity", "uniqueness"),
        ("freshness", "timeliness"),
        ("volume", "volume"),
        ("own-1:expect_column_values_to_be_unique", "uniqueness"),
        ("own-2:ExpectColumnValuesToNotBeNull", "completeness"),
        ("own-3:expect_table_row_count_to_be_between", "volume"),
        ("own-4:expect_column_max_to_be_between", "validity"),
        ("no-such-check", None),
    ],
)
def test_an_expectation_belongs_to_the_dimension_of_what_it_checks(name, dimension):
    assert dimension_of(name) == dimension


def test_a_score_is_the_unweighted_share_of_checks_that_passed():
    judged = run(
        mode="backfill",
        expectations=(
            expectation("id-present", success=True),
            expectation("type-present", success=True),
            expectation("required-attribute:speed", success=False),
            expectation("freshness", success=False),
            expectation("unique-identity", success=True),
        ),
        rules=(rule("range"),),
    )
    found = score_dimensions(judged, publication())
    assert [(each.dimension, each.percent, each.passed, each.checks, each.failed) for each in found] == [
        ("completeness", 66.7, 2, 3, ("required-attribute:speed",)),
        ("validity", 0.0, 0, 1, ("range",)),
        ("uniqueness", 100.0, 1, 1, ()),
        ("timeliness", 0.0, 0, 1, ("freshness",)),
        ("volume", None, 0, 0, ()),
    ]


def test_rules_that_nothing_broke_count_as_passed():
    found = {each.dimension: each for each in score_dimensions(run(rules=(rule("duplicate"),)), publication())}
    assert (found["uniqueness"].percent, found["uniqueness"].checks) == (50.0, 2)
    assert (found["volume"].percent, found["volume"].checks) == (100.0, 3)


def test_a_rule_that_is_an_expectation_as_well_counts_once_as_the_expectation():
    tolerated = run(rules=(rule("count-mismatch"),), expectations=(expectation("count-mismatch", success=True),))
    volume = score_dimensions(tolerated, None)[4]
    assert (volume.percent, volume.passed, volume.checks) == (100.0, 1, 1)


def test_rules_count_where_they_are_on_and_have_what_they_need():
    assert not checked_rules(run(), publication()) & {"range", "enum", "model", "required-attr", "stale", "attr-type"}
    wanted = publication(quality={"ranges": {"speed": {"minimum": 0}}, "rules": {"datetime": "off"}})
    assert checked_rules(run(), wanted) & {"range", "datetime", "datetime-range"} == {"range", "datetime-range"}
    assert "transcoding-loss" not in checked_rules(run(), structures())


def test_rules_about_the_whole_count_in_full_runs_alone():
    whole = {"count-drop", "count-zero", "count-mismatch", "relationship-target"}
    assert checked_rules(run(), publication()) & whole == whole
    assert checked_rules(run(in_source=None), publication()) & whole == {"count-drop", "relationship-target"}
    assert checked_rules(run(mode="changes"), publication()) & whole == set()


def test_no_rule_counts_in_a_backfill_nor_where_the_settings_are_gone():
    assert checked_rules(run(mode="backfill"), publication()) == set()
    assert checked_rules(run(), None) == set()
