"""What `quality` may say of a broker and of a registry."""

from __future__ import annotations

import pytest

from contexture.publications.loading import validate

REGISTRY = {
    "source": {"kind": "sdmx", "connection": "registry"},
    "topics": {"naming": "fixed", "topics": "FOO"},
    "message": {"format": "sdmx"},
}
BROKER = {"source": {"kind": "ngsi", "connection": "broker", "service": "vehicles"}}


def findings(source: dict[str, object], **quality: object) -> list[str]:
    """What is wrong with the section `quality`, as `key: message (hint)`."""
    _, found = validate({"name": "a", **source, "quality": quality})
    return [
        f"{'.'.join(map(str, each.location[1:]))}: {each.message} ({each.hint})"
        for each in found
        if each.location[0] == "quality"
    ]


def test_each_kind_has_rules_of_its_own() -> None:
    assert findings(REGISTRY, rules={"dangling-reference": "error", "duplicate": "warning", "schema": "off"}) == []
    assert findings(REGISTRY, rules={"stale": "off", "id-syntax": "off"}) == [
        "rules.stale: `stale` is a rule about entities, and needs `kind: ngsi` (leave it out)",
        "rules.id-syntax: `id-syntax` is a rule about entities, and needs `kind: ngsi` (leave it out)",
    ]
    assert findings(BROKER, rules={"stale": "off", "duplicate": "warning"}) == []
    assert findings(BROKER, rules={"topic-name": "error"}) == [
        "rules.topic-name: `topic-name` is a rule about structures, and needs `kind: sdmx`"
        " (leave it out, or did you mean 'topic-length'?)"
    ]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("unreadable", "there is nothing that could be published"),
        ("one-structure", "a record has the URN of one structure for its key"),
        ("urn-missing", "its URN is the key of a record"),
        ("topic-name", "Kafka accepts no such name"),
    ],
)
def test_what_can_not_be_sent_can_not_be_let_through(rule: str, reason: str) -> None:
    assert findings(REGISTRY, rules={rule: "error"}) == []
    assert findings(REGISTRY, rules={rule: "warning"}) == [
        f"rules.{rule}: `{rule}: warning`: {reason} (leave it out: it is always an error)"
    ]


def test_expectations_are_about_what_the_source_holds() -> None:
    unique = {"name": "ExpectColumnValuesToBeUnique", "kwargs": {"column": "urn"}}
    assert findings(REGISTRY, expectations=[{**unique, "on": "structures"}]) == []
    assert findings(REGISTRY, expectations=[unique]) == [
        "expectations.0.on: `on: entities` needs `kind: ngsi` (write `on: structures`)"
    ]
    assert findings(BROKER, expectations=[{**unique, "on": "structures"}]) == [
        "expectations.0.on: `on: structures` needs `kind: sdmx` (write `on: entities`)"
    ]


def test_an_expectation_names_columns_that_structures_have() -> None:
    named = {"column_list": ["urn", "sise"], "column": "colour"}
    wrong = {"name": "ExpectMulticolumnValuesToBeUnique", "on": "structures", "kwargs": named}
    columns = (
        "there are urn, kind, agency, id, version, declared_urn, source_transaction, modified_at, size, "
        "reference_count, is_final, topics, warnings, transcoded_from, lost, seconds_ahead"
    )
    assert findings(REGISTRY, expectations=[wrong]) == [
        f"expectations.0.kwargs: the frame of structures has no column 'colour' ({columns})",
        f"expectations.0.kwargs: the frame of structures has no column 'sise' (did you mean 'size'? {columns})",
    ]


BETWEEN = {"name": "expect_column_values_to_be_between", "kwargs": {"column": "value_speed", "max_value": 200}}
OF_ATTRIBUTES = {
    "name": "ExpectColumnValuesToBeInSet",
    "on": "attributes",
    "where": "attribute = 'state' AND (text IS NOT NULL)",
    "kwargs": {"column": "text", "value_set": ["on", "off"], "mostly": 0.99, "severity": "info"},
}


@pytest.mark.parametrize(
    "expectation", [BETWEEN, OF_ATTRIBUTES, {"name": "expect_table_row_count_to_equal", "kwargs": {"value": 3}}]
)
def test_a_right_expectation_of_entities_or_attributes_passes(expectation: dict[str, object]) -> None:
    assert findings(BROKER, expectations=[expectation]) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (
            {"name": "ExpectColumnValuesToBeBetwen"},
            "expectations.0.name: Great Expectations has no ExpectColumnValuesToBeBetwen (did you mean "
            "'ExpectColumnValuesToBeBetween'? they are listed in the documentation of Great Expectations)",
        ),
        (
            {"kwargs": {"column": "value_speed", "maximum": 3}},
            "expectations.0.kwargs.maximum: ExpectColumnValuesToBeBetween has no argument `maximum` (it takes column, "
            "max_value, min_value, mostly, notes, severity, strict_max, strict_min)",
        ),
        (
            {"kwargs": {"max_value": 3}},
            "expectations.0: ExpectColumnValuesToBeBetween needs the argument `column` (add `column` to kwargs)",
        ),
        (
            {"kwargs": {"column": "speed"}},
            "expectations.0.kwargs: the frame of entities has no column 'speed' (there are identity, service, "
            "service_path, id, type, modified_at, received_at, topic, seconds_ahead, and value_NAME and type_NAME of "
            "each attribute)",
        ),
        (
            {"on": "attributes"},
            "expectations.0.kwargs: the frame of attributes has no column 'value_speed' (there are identity, service, "
            "service_path, id, type, attribute, dataset_id, attribute_type, number, text, modified_at, received_at, "
            "seconds_ahead)",
        ),
        (
            {"where": "type = 'car"},
            "expectations.0.where: `where` is not an SQL condition: a quote is not closed (write what could follow on "
            "WHERE, such as type = 'car' AND value_speed > 0)",
        ),
        (
            {"where": "(type = 'a)b'"},
            "expectations.0.where: `where` is not an SQL condition: a parenthesis is not closed, or closed too often "
            "(write what could follow on WHERE, such as type = 'car' AND value_speed > 0)",
        ),
    ],
)
def test_a_wrong_expectation_is_reported_before_any_run(changes: dict[str, object], found: str) -> None:
    assert findings(BROKER, expectations=[BETWEEN | changes]) == [found]


@pytest.mark.parametrize("where", ["id LIKE 'it\\'s (%'", 'type = "a)"', "`value_a(b` > 0", "NOT (a OR (b))"])
def test_signs_within_quotes_open_nothing(where: str) -> None:
    assert findings(BROKER, expectations=[BETWEEN | {"where": where}]) == []
