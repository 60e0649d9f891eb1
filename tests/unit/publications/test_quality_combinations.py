"""What `quality` may say of a broker and of a registry."""

from __future__ import annotations

import pytest

from contexture.publications.validation import validate

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
        ("topic-name", "Kafka takes no such name"),
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
    wrong = {"name": "expect_x", "on": "structures", "kwargs": {"column_list": ["urn", "sise"], "column": "colour"}}
    columns = (
        "there are urn, kind, agency, id, version, declared_urn, source_transaction, modified_at, size, "
        "reference_count, is_final, topics, warnings, transcoded_from, lost"
    )
    assert findings(REGISTRY, expectations=[wrong]) == [
        f"expectations.0.kwargs: the frame of structures has no column 'colour' ({columns})",
        f"expectations.0.kwargs: the frame of structures has no column 'sise' (did you mean 'size'? {columns})",
    ]
