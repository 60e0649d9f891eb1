"""What an NGSI-LD entity no longer has (clause 4.5.0), members that a user called like the broker's own, and lists."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from contexture.sources.ngsi.entity import ParsedEntity, parse_entity
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity

NULL = "urn:ngsi-ld:null"
LEVEL = {"type": "Property", "value": 7}


def parsed(**members: Any) -> ParsedEntity:
    entity = {"id": "urn:ngsi-ld:Car:1", "type": "Car", **members}
    return parse_entity(orjson.dumps(entity), service="city", form="ngsi-ld")


@pytest.mark.parametrize(
    "removed",
    [
        {"type": "Property", "value": NULL},
        {"type": "Property", "value": NULL, "deletedAt": "2026-01-01T00:00:00Z"},
        {"type": "Property", "value": 5, "deletedAt": "2026-01-01T00:00:00Z"},
        {"type": "Relationship", "object": NULL},
        {"type": "LanguageProperty", "languageMap": {"@none": NULL}},
        {"type": "VocabProperty", "vocab": NULL},
        {"type": "JsonProperty", "json": NULL},
        {"type": "ListProperty", "valueList": NULL},
        {"value": NULL},
        NULL,
        [{"type": "Property", "value": NULL}, {"type": "Property", "value": NULL, "datasetId": "urn:gps"}],
    ],
)
def test_a_removed_attribute_is_absent(removed: object) -> None:
    entity = parsed(speed=removed, level=LEVEL)

    assert list(entity.attributes) == ["level"]
    assert entity.linked_data == {"id": "urn:ngsi-ld:Car:1", "type": "Car", "level": LEVEL}


def test_a_removed_instance_leaves_the_others() -> None:
    entity = parsed(speed=[{"type": "Property", "value": NULL, "datasetId": "urn:gps"}, LEVEL])

    assert {name: value["value"] for name, value in entity.attributes.items()} == {"speed": 7}  # type: ignore[index]


def test_a_removed_sub_attribute_and_a_removed_scope_are_absent() -> None:
    entity = parsed(level={**LEVEL, "accuracy": {"type": "Property", "value": NULL}}, scope=NULL)

    assert entity.attributes == {"level": {"type": "Number", "value": 7, "metadata": {}}}


def test_a_text_that_mentions_the_null_stays() -> None:
    assert list(parsed(note={"type": "Property", "value": [NULL]}).attributes) == ["note"]


def test_the_name_that_orion_ld_gives_a_vocab_property_is_taken() -> None:
    entity = parsed(colour={"type": "VocabularyProperty", "vocab": "red"})

    assert entity.attributes == {"colour": {"type": "VocabularyProperty", "value": "red", "metadata": {}}}
    assert check_entity(entity, EntityRuleOptions(linked_data=True)) == []


@pytest.mark.parametrize("name", ["createdAt", "modifiedAt", "deletedAt", "instanceId", "expiresAt", "scope"])
def test_an_attribute_called_like_a_member_of_the_broker_is_an_attribute(name: str) -> None:
    users = {"type": "Property", "value": "2030-01-01T00:00:00Z"}

    entity = parsed(**{name: users})

    assert entity.attributes[name] == {"type": "Text", "value": "2030-01-01T00:00:00Z", "metadata": {}}
    assert entity.linked_data is not None
    assert entity.linked_data[name] == users
    assert (entity.created_at, entity.modified_at, entity.expires_at) == (None, None, None)


def test_a_list_of_objects_is_a_value_without_an_attribute_and_no_list_of_instances() -> None:
    entity = parsed(addresses=[{"street": "A"}, {"street": "B"}])

    violations = check_entity(entity, EntityRuleOptions(linked_data=True))

    assert [violation.rule for violation in violations] == ["attr-shape"]
    assert "datasetId" not in violations[0].message


@pytest.mark.parametrize("kind", [["Property"], {}, 5, None])
def test_a_list_of_objects_whose_type_is_no_text_is_a_value_too(kind: object) -> None:
    assert parsed(a=[{"type": kind}]).attributes == {"a": [{"type": kind}]}
