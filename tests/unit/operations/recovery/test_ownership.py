"""Whose record it is."""

from __future__ import annotations

from typing import Any

import pytest

from builders.outboxes import publication
from builders.registry import urn
from builders.structure_runs import registry_publication
from contexture.kafka import TopicRecord
from contexture.operations.recovery.ownership import owner_of

FIXED = {"naming": "fixed", "topics": ["cars"]}
MAPPINGS = (
    '{"serviceMappings":[{"originalService":"vehicles","servicePathMappings":[{"originalServicePath":"/4wheels",'
    '"entityMappings":[{"originalEntityId":"a","originalEntityType":"car","attributeMappings":'
    '[{"originalAttributeName":"speed","originalAttributeType":"Number","newAttributeName":"v"}]}]}]}]}'
)


def record(key: bytes | None, value: bytes = b"{}", topic: str = "cars") -> TopicRecord:
    return TopicRecord(topic, 0, 0, key, value, (), None)


def owns(key: bytes, **source: Any) -> bool:
    owner = {"kind": "ngsi", "connection": "c", "service": "vehicles", "service_path": "/a/#", **source}
    return owner_of(publication(source=owner, topics=FIXED)).of(record(key)) is not None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, True),
        ({"service": "other"}, False),
        ({"service_path": ["/x", "/a/b"]}, True),
        ({"service_path": "/a"}, False),
        ({"types": ["bus", "car"]}, True),
        ({"types": ["bus"]}, False),
        ({"type_pattern": "^c"}, True),
        ({"type_pattern": "^d"}, False),
        ({"ids": ["car1"]}, True),
        ({"ids": ["car2"]}, False),
        ({"id_pattern": "ar[0-9]$"}, True),
        ({"id_pattern": "^ar"}, False),
        ({"query": "speed>50"}, True),
    ],
)
def test_an_identity_has_to_be_selected(source: dict[str, Any], expected: bool) -> None:
    assert owns(b'["vehicles","/a/b","car1","car"]', **source) is expected


@pytest.mark.parametrize(
    "key", [b"", b"{}", b"[1]", b'["vehicles","/a","car1",1]', b'["vehicles","/a","car1","car","speed"]', b"\xff"]
)
def test_other_keys_are_nobodys(key: bytes) -> None:
    assert not owns(key)


def test_scopes_are_no_part_of_an_identity_and_types_may_be_several() -> None:
    linked = {"api": "ngsi-ld", "service_path": "/somewhere", "types": ["Car"]}

    assert owns(b'["vehicles","/","urn:ngsi-ld:Car:1","Car,Thing"]', **linked)
    assert not owns(b'["vehicles","/","urn:ngsi-ld:Car:1","Thing"]', **linked)


def test_name_mappings_by_type_are_followed_through_the_value() -> None:
    topics = {
        "data_model": "dm-by-attribute",
        "enable_name_mappings": True,
        "name_mappings": "m.json",
        "name_mappings_content": MAPPINGS,
    }
    owner = owner_of(publication(topics=topics))
    key, mapped = b'["vehicles","/4wheels","a","car","speed"]', "vehiclesxffffx002f4wheelsxffffaxffffcarxffffv"
    number = b'{"id":"a","type":"car","speed":{"type":"Number","value":1}}'

    assert owner.of(record(key, number, mapped)) is not None
    assert owner.of(record(key, number.replace(b"Number", b"Text"), mapped)) is None


def test_a_structure_has_to_be_selected_and_routed_there() -> None:
    owner = owner_of(
        registry_publication(
            source={"kind": "sdmx", "connection": "registry", "select": ["Codelist=X:*(*)"]},
            topics={"topics": ["all"], "routes": [{"select": "Codelist=X:CL_A(~)", "topics": ["a-{agency}"]}]},
        )
    )
    a, b = urn("CL_A", "1.0").encode(), urn("CL_B", "1.0").encode()

    assert owner.of(record(a, topic="all")) is not None
    # It may have been the latest version once.
    assert owner.of(record(a, topic="a-X")) is not None
    assert owner.of(record(b, topic="a-X")) is None
    assert owner.of(record(a.replace(b"=X:", b"=Y:"), topic="all")) is None
    assert owner.of(record(a + b".ITEM", topic="all")) is None
    assert owner.of(record(b"\xff", topic="all")) is None
    assert owner.of(record(None, topic="all")) is None
