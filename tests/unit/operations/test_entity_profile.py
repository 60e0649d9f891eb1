"""The profile of sample entities, and the rules that it suggests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from contexture.operations.actions.entity_profile import RuleCandidate, common_pattern, profile_entities, suggest_rules
from contexture.sources.ngsi.entity import ParsedEntity, parse_entity


def entity(**attributes: Any) -> ParsedEntity:
    body = {"id": "e", "type": "T"} | {
        name: value
        if isinstance(value, dict)
        else {"type": "Number" if isinstance(value, int | float) else "Text", "value": value}
        for name, value in attributes.items()
    }
    return parse_entity(json.dumps(body).encode(), service="s")


def suggested(entities: Iterable[ParsedEntity]) -> list[RuleCandidate]:
    return suggest_rules(profile_entities(list(entities)))


def test_what_the_sample_has_of_each_attribute():
    speed, name = profile_entities(
        [
            entity(speed=1, name="a"),
            entity(speed=2.5),
            entity(speed="x"),
            entity(speed={"type": "Float", "value": None}),
        ]
    )[::-1]
    assert name.as_dict() == {
        "name": "name",
        "types": {"Text": 1},
        "present": 1,
        "missing_share": 0.75,
        "minimum": None,
        "maximum": None,
        "distinct_texts": 1,
        "frequent_texts": ["a"],
    }
    assert speed.as_dict() == {
        "name": "speed",
        "types": {"Number": 2, "Text": 1, "Float": 1},
        "present": 4,
        "missing_share": 0.0,
        "minimum": 1,
        "maximum": 2.5,
        "distinct_texts": 1,
        "frequent_texts": ["x"],
    }
    assert str(speed) == "speed: in 4 of 4 (Number 2, Text 1, Float 1); 1 to 2.5; texts: 1 different"


def test_an_empty_sample_suggests_nothing():
    assert suggested([]) == []


def test_what_all_entities_have_may_be_required():
    assert suggested([entity(a=1, b=1), entity(a=1)]) == [
        RuleCandidate("required", "a", None, "in all 2 sampled entities")
    ]


@pytest.mark.parametrize(
    ("numbers", "bounds", "why"),
    [
        (range(3, 23), (0, 50), "sampled: 3 to 22"),
        (range(0, 200, 10), (0, 500), "sampled: 0 to 190"),
        ([each / 100 for each in range(20, 90)], (0, 1), "sampled: 0.2 to 0.89"),
        (range(-5, 20), (-10, 50), "sampled: -5 to 19"),
        (range(-30, -5), (-50, 0), "sampled: -30 to -6"),
        ([0, 1] * 10, (0, 2), "sampled: 0 to 1"),
        (range(1_700_000_000, 1_700_000_020), (0, 5_000_000_000), "sampled: 1700000000 to 1700000019"),
    ],
)
def test_a_range_has_room_around_what_was_seen(numbers, bounds, why):
    found = [each for each in suggested(entity(n=each) for each in numbers) if each.rule == "range"]
    assert found == [RuleCandidate("range", "n", bounds, why)]


def test_few_numbers_one_number_and_numbers_among_texts_suggest_no_range():
    assert [each.rule for each in suggested(entity(n=5) for each in range(30))] == ["required"]
    assert [each.rule for each in suggested(entity(n=each) for each in range(19))] == ["required"]
    assert [each.rule for each in suggested(entity(n=each) for each in [*range(30), "x"])] == ["required"]


def test_a_few_texts_that_come_often_are_an_enumeration():
    texts = ["working"] * 18 + ["closed"] * 5
    assert suggested(entity(status=each) for each in texts)[1:] == [
        RuleCandidate("enumeration", "status", ("working", "closed"), "sampled: 18 times, 5 times")
    ]


@pytest.mark.parametrize(
    "texts",
    [
        ["working"] * 30,
        [f"text {chr(97 + each)}" for each in range(20)],
        ["a", "b"] * 4,
        ["2026-01-02T03:04:05Z", "2026-01-03"] * 20,
        ["x" * 41, "y"] * 20,
        ["", "a"] * 3,
    ],
    ids=["constant", "many", "few entities", "moments", "long", "empty"],
)
def test_texts_without_an_enumeration(texts):
    assert [each.rule for each in suggested(entity(t=each) for each in texts)] == ["required"]


def test_references_and_moments_are_no_enumeration():
    kinds = ["Relationship", "DateTime"]
    entities = [entity(a={"type": kind, "value": value}) for kind in kinds for value in ("x", "y") * 10]
    assert [each.rule for each in suggested(entities)] == ["required"]


def test_texts_of_one_form_are_a_pattern():
    texts = [f"AB-{number:04}" for number in range(20)]
    assert suggested(entity(plate=each) for each in texts)[1:] == [
        RuleCandidate("pattern", "plate", "^[A-Z]{2}\\-[0-9]{4}$", "all 20 different texts of the sample match")
    ]


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["a1", "bc23"], "^[a-z]{1,2}[0-9]{1,2}$"),
        (["x.1", "y.2"], "^[a-z]\\.[0-9]$"),
        (["one two", "a b"], None),
        (["12", "345"], None),
        (["a1", "1a"], None),
        (["ä1", "b2"], None),
        (["a1b2c3d4e5f6g7", "a1b2c3d4e5f6g7"], None),
        (["", "a1"], None),
    ],
)
def test_a_pattern_has_runs_of_digits_letters_and_signs(texts, pattern):
    assert common_pattern(texts) == pattern
