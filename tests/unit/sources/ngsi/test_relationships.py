"""What entities refer to."""

from __future__ import annotations

import orjson
import pytest

from contexture.sources.ngsi.entity import parse_entity, targets


@pytest.mark.parametrize(
    ("name", "attribute", "found"),
    [
        ("owner", {"type": "Relationship", "value": "bob"}, ["bob"]),
        ("refOwner", {"type": "Text", "value": "bob"}, ["bob"]),
        ("refOwners", {"type": "StructuredValue", "value": ["bob", "eve", 5, ""]}, ["bob", "eve"]),
        ("reference", {"type": "Text", "value": "bob"}, []),
        ("refowner", {"type": "Text", "value": "bob"}, []),
        ("refOwner", {"type": "Number", "value": 5}, []),
        ("refOwner", {"type": "Text", "value": ""}, []),
        ("refOwner", {"type": "Text"}, []),
        ("refOwner", "bob", []),
        ("owner", {"type": ["Relationship"], "value": "bob"}, []),
    ],
)
def test_relationships_and_references_name_targets(name: str, attribute: object, found: list[str]) -> None:
    body = orjson.dumps({"id": "car1", "type": "car", name: attribute})

    assert targets(parse_entity(body, service="vehicles")) == found


def test_a_urn_of_a_type_that_is_not_read_is_left_out() -> None:
    urns = ["urn:ngsi-ld:car:1", "urn:ngsi-ld:bus:1", "urn:other:bus:1", "bus1"]
    body = orjson.dumps({"id": "car1", "type": "car", "refs": {"type": "Relationship", "value": urns}})
    parsed = parse_entity(body, service="vehicles")

    assert targets(parsed, frozenset({"car"})) == ["urn:ngsi-ld:car:1", "urn:other:bus:1", "bus1"]
    assert targets(parsed) == urns
