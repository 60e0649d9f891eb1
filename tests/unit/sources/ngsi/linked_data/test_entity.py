"""An NGSI-LD entity in the one model of attributes, with literal values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from contexture.events import AttributeName, ContextIdentity, content_hash
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity
from samples_location import samples_or_skip


def parsed(**members: object) -> ParsedEntity:
    entity = {"id": "urn:ngsi-ld:Car:1", "type": "Car", **members}
    return parse_entity(orjson.dumps(entity), service="city", form="ngsi-ld")


def attribute(value: object) -> Any:
    return parsed(a=value).attributes["a"]


@pytest.mark.parametrize(
    ("given", "type_", "value"),
    [
        ({"type": "Property", "value": 7}, "Number", 7),
        ({"type": "Property", "value": "x"}, "Text", "x"),
        ({"type": "Property", "value": True}, "Boolean", True),
        ({"type": "Property", "value": [1]}, "StructuredValue", [1]),
        (
            {"type": "Property", "value": {"@type": "DateTime", "@value": "2026-01-01T00:00:00Z"}},
            "DateTime",
            "2026-01-01T00:00:00Z",
        ),
        ({"type": "Relationship", "object": "urn:b"}, "Relationship", "urn:b"),
        ({"type": "Relationship", "object": ["urn:b", "urn:c"]}, "Relationship", ["urn:b", "urn:c"]),
        (
            {"type": "GeoProperty", "value": {"type": "Point", "coordinates": [1, 2]}},
            "geo:json",
            {"type": "Point", "coordinates": [1, 2]},
        ),
        ({"type": "LanguageProperty", "languageMap": {"en": "Hi"}}, "LanguageProperty", {"en": "Hi"}),
        ({"type": "VocabProperty", "vocab": "red"}, "VocabProperty", "red"),
        ({"type": "JsonProperty", "json": {"a": 1}}, "JsonProperty", {"a": 1}),
        ({"type": "ListProperty", "valueList": [1, 2]}, "ListProperty", [1, 2]),
        ({"type": "ListRelationship", "objectList": [{"object": "urn:b"}]}, "ListRelationship", [{"object": "urn:b"}]),
        ({"value": 7}, "Number", 7),
        ({"object": "urn:b"}, "Relationship", "urn:b"),
    ],
)
def test_every_kind_of_attribute_has_its_ngsiv2_form(given: object, type_: str, value: object) -> None:
    """Clauses 4.5.2 to 4.5.20 of GS CIM 009, and the concise form (4.5.0)."""
    assert attribute(given) == {"type": type_, "value": value, "metadata": {}}


def test_other_members_than_the_value_become_metadata() -> None:
    given = {
        "type": "Property",
        "value": 50,
        "unitCode": "KMH",
        "observedAt": "2026-01-01T00:00:00Z",
        "createdAt": "2025-01-01T00:00:00Z",
        "modifiedAt": "2025-01-01T00:00:00Z",
        "accuracy": {"type": "Property", "value": 0.5, "unitCode": "P1"},
        "source": {"type": "Relationship", "object": "urn:b"},
    }

    assert attribute(given)["metadata"] == {
        "unitCode": {"type": "Text", "value": "KMH"},
        "observedAt": {"type": "DateTime", "value": "2026-01-01T00:00:00Z"},
        "accuracy": {"type": "Number", "value": 0.5},
        "accuracy.unitCode": {"type": "Text", "value": "P1"},
        "source": {"type": "Relationship", "value": "urn:b"},
    }


def test_instances_of_one_attribute_are_distinguished_by_their_dataset() -> None:
    """Clause 4.5.5: several instances with datasetId, at most one default instance without."""
    entity = parsed(
        speed=[
            {"type": "Property", "value": 2, "datasetId": "urn:gps"},
            {"type": "Property", "value": 1},
        ]
    )

    assert {name: value["value"] for name, value in entity.attributes.items()} == {"speed": 1, "speed:urn:gps": 2}  # type: ignore[index]
    assert entity.attribute_name("speed") == AttributeName("speed")
    assert entity.attribute_name("speed:urn:gps") == AttributeName("speed", "urn:gps")


def test_two_indistinguishable_instances_are_refused() -> None:
    with pytest.raises(EntityError, match="two instances of 'speed'"):
        parsed(speed=[{"type": "Property", "value": 1}, {"type": "Property", "value": 2}])


@pytest.mark.parametrize("value", [[], ["x"], ["x", "y"], [{"type": "Property", "value": 1}, 5]])
def test_a_list_of_something_else_than_instances_is_left_to_the_rules(value: list[object]) -> None:
    entity = parsed(a=value)

    assert entity.attributes == {"a": value}
    assert [each.rule for each in check_entity(entity, EntityRuleOptions(linked_data=True))] == ["attr-shape"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "Relationship", "value": "urn:b:1"}, "'a' is a 'Relationship' without the member 'object'"),
        ({"type": "ListProperty", "value": [1]}, "'a' is a 'ListProperty' without the member 'valueList'"),
        ({"type": "Point", "coordinates": [1, 2]}, "'a' is a 'Point' without the member 'value'"),
        ({"unitCode": "CEL"}, "'a' is a 'Property' without the member 'value'"),
        ("plain", "'a' is not an object with a value"),
    ],
)
def test_an_attribute_without_a_value_is_reported_with_the_member_of_its_kind(value: object, message: str) -> None:
    found = check_entity(parsed(a=value), EntityRuleOptions(linked_data=True))

    assert [(each.rule, each.message) for each in found] == [("attr-shape", message)]


def test_an_entity_may_have_several_places() -> None:
    place = {"type": "GeoProperty", "value": {"type": "Point", "coordinates": [2.1, 41.3]}}
    turned = {"type": "GeoProperty", "value": {"type": "Point", "coordinates": [41.3, 102.1]}}

    found = check_entity(parsed(location=place, observationSpace=place), EntityRuleOptions(linked_data=True))
    broken = check_entity(parsed(location=place, observationSpace=turned), EntityRuleOptions(linked_data=True))

    assert [(each.rule, each.severity) for each in found] == []
    assert [(each.rule, each.severity) for each in broken] == [("geojson", "warning")]


def test_the_order_in_which_a_broker_lists_types_scopes_and_instances_changes_nothing() -> None:
    one, two = {"value": 1, "datasetId": "urn:a"}, {"value": 2, "datasetId": "urn:b"}

    first = parsed(type=["Car", "Asset"], scope=["/b", "/a"], x=[one, two])
    second = parsed(type=["Asset", "Car"], scope=["/a", "/b"], x=[two, one])

    assert first.identity == ContextIdentity("city", "/", "urn:ngsi-ld:Car:1", "Asset,Car")
    assert content_hash(first.entity) == content_hash(second.entity)


def test_a_scope_is_an_attribute_and_no_service_path() -> None:
    entity = parsed(scope="/Madrid/Centro")

    assert entity.identity.service_path == "/"
    assert entity.attributes["scope"] == {"type": "Text", "value": "/Madrid/Centro", "metadata": {}}


def test_the_brokers_members_are_separated_and_literals_are_kept() -> None:
    body = (
        b'{"id":"urn:a","type":"Car","createdAt":"2026-01-01T00:00:00Z","modifiedAt":"2026-01-02T00:00:00.5Z",'
        b'"a":{"type":"Property","value":1.0E5,"modifiedAt":"2026-01-02T00:00:00.5Z"}}'
    )

    entity = parse_entity(body, service="city", form="ngsi-ld")

    assert entity.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert entity.modified_at == datetime(2026, 1, 2, 0, 0, 0, 500000, tzinfo=UTC)
    assert (
        orjson.dumps(entity.entity) == b'{"id":"urn:a","type":"Car","a":{"type":"Number","value":1.0E5,"metadata":{}}}'
    )
    assert orjson.dumps(entity.linked_data) == b'{"id":"urn:a","type":"Car","a":{"type":"Property","value":1.0E5}}'


def test_a_value_may_have_members_called_like_the_brokers() -> None:
    given = {"type": "Property", "value": {"createdAt": "by a user"}}

    assert parsed(a=given).linked_data == {"id": "urn:ngsi-ld:Car:1", "type": "Car", "a": given}


def test_an_attribute_without_its_value_is_left_to_the_rules() -> None:
    assert attribute({"type": "Relationship", "value": "urn:b"}) == {
        "type": "Relationship",
        "metadata": {"value": {"type": "Text", "value": "urn:b"}},
    }
    assert attribute("plain") == "plain"


def test_official_examples_lose_no_attribute() -> None:
    paths = sorted(samples_or_skip().glob("ngsi/*/*/ld-normalized.jsonld"))

    assert len(paths) == 6
    for path in paths:
        body = path.read_bytes()
        entity = parse_entity(body, service="", form="ngsi-ld")
        assert set(entity.attributes) == set(orjson.loads(body)) - {"id", "type", "@context"}
        assert all("value" in one for one in entity.attributes.values())  # type: ignore[operator]


def test_each_instance_has_the_time_of_its_own_change_where_that_is_asked_for() -> None:
    """Clause 4.8: attributes have modifiedAt too."""
    gps = {"type": "Property", "value": 1, "datasetId": "urn:gps", "modifiedAt": "2026-01-02T00:00:00Z"}
    plain = {"type": "Property", "value": 2, "modifiedAt": "2026-01-01T00:00:00Z"}
    body = orjson.dumps({"id": "urn:a", "type": "Car", "speed": [gps, plain], "name": {"value": "x"}})

    entity = parse_entity(body, service="city", form="ngsi-ld", attribute_times=True)

    assert entity.attribute_times == {
        "speed:urn:gps": datetime(2026, 1, 2, tzinfo=UTC),
        "speed": datetime(2026, 1, 1, tzinfo=UTC),
    }
    assert parse_entity(body, service="city", form="ngsi-ld").attribute_times is None


def test_a_transient_entity_says_when_it_ends_and_keeps_saying_so() -> None:
    """Clause 4.8: expiresAt is its creator's, unlike the broker's own times."""
    entity = parsed(expiresAt="2026-01-03T00:00:00Z")

    assert entity.expires_at == datetime(2026, 1, 3, tzinfo=UTC)
    assert entity.attributes["expiresAt"] == {"type": "DateTime", "value": "2026-01-03T00:00:00Z", "metadata": {}}
    assert parsed().expires_at is None
