"""The body format `ngsi-ld`: the source's own entity, or one converted from NGSIv2."""

from __future__ import annotations

import orjson
import pytest

from contexture.events import AttributeName, parse_json
from contexture.records.messages import MessageError, ngsi_ld
from contexture.records.messages.ngsi_ld import entity_uri

CORE = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"


def converted(attribute: str, name: str = "a") -> str:
    """The JSON text that the attribute of an NGSIv2 entity becomes."""
    entity = parse_json(b'{"id":"i","type":"T","%b":%b}' % (name.encode(), attribute.encode()))
    assert isinstance(entity, dict)
    head = f'{{"id":"urn:ngsi-ld:T:i","type":"T","{name}":'
    tail = f',"@context":"{CORE}"}}'
    text = ngsi_ld.body(entity).decode()
    assert text.startswith(head)
    assert text.endswith(tail)
    return text.removeprefix(head).removesuffix(tail)


@pytest.mark.parametrize(
    ("entity_id", "entity_type", "uri"),
    [
        ("car1", "car", "urn:ngsi-ld:car:car1"),
        ("urn:ngsi-ld:Car:1", "Car", "urn:ngsi-ld:Car:1"),
        ("https://city.example/cars/1?x=1#y", "Car", "https://city.example/cars/1?x=1#y"),
        ("Room:1", "Room", "urn:ngsi-ld:Room:Room:1"),
        ("a b/é%", "x y", "urn:ngsi-ld:x%20y:a%20b%2F%C3%A9%25"),
        ("urn:x:a b", "T", "urn:x:a%20b"),
    ],
)
def test_ids_become_uris(entity_id: str, entity_type: str, uri: str) -> None:
    assert entity_uri(entity_id, entity_type) == uri


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ('{"type":"Number","value":1.0E2,"metadata":{}}', '{"type":"Property","value":1.0E2}'),
        (
            '{"type":"Number","value":12345678901234567890123}',
            '{"type":"Property","value":12345678901234567890123}',
        ),
        ('{"type":"Text","value":"red"}', '{"type":"Property","value":"red"}'),
        (
            '{"type":"DateTime","value":"2026-11-21T05:38:57.734Z"}',
            '{"type":"Property","value":{"@type":"DateTime","@value":"2026-11-21T05:38:57.734Z"}}',
        ),
        (
            '{"type":"ISO8601","value":"2026-11-21"}',
            '{"type":"Property","value":{"@type":"DateTime","@value":"2026-11-21"}}',
        ),
        ('{"type":"Date","value":"2026-11-21"}', '{"type":"Property","value":{"@type":"Date","@value":"2026-11-21"}}'),
        ('{"type":"None","value":null}', '{"type":"Property","value":{"@type":"@json","@value":null}}'),
        ('{"type":"Relationship","value":"urn:ngsi-ld:R:1"}', '{"type":"Relationship","object":"urn:ngsi-ld:R:1"}'),
        ('{"type":"Relationship","value":"r 1"}', '{"type":"Relationship","object":"urn:ngsi-ld:Thing:r%201"}'),
        (
            '{"type":"Relationship","value":["r1","urn:r:2"]}',
            '{"type":"Relationship","object":["urn:ngsi-ld:Thing:r1","urn:r:2"]}',
        ),
        ('{"type":"Relationship","value":7}', '{"type":"Property","value":7}'),
        (
            '{"type":"geo:json","value":{"type":"Point","coordinates":[1.0,2.50]}}',
            '{"type":"GeoProperty","value":{"type":"Point","coordinates":[1.0,2.50]}}',
        ),
        (
            '{"type":"geo:json","value":{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}}}',
            '{"type":"GeoProperty","value":{"type":"Point","coordinates":[1,2]}}',
        ),
        ('{"type":"geo:json","value":{"type":"Cube"}}', '{"type":"Property","value":{"type":"Cube"}}'),
        (
            '{"type":"geo:point","value":"40.410, -3.7"}',
            '{"type":"GeoProperty","value":{"type":"Point","coordinates":[-3.7,40.410]}}',
        ),
        ('{"type":"geo:point","value":"91, 0"}', '{"type":"Property","value":"91, 0"}'),
        (
            '{"type":"geo:line","value":["1,2","3,4"]}',
            '{"type":"GeoProperty","value":{"type":"LineString","coordinates":[[2,1],[4,3]]}}',
        ),
        (
            '{"type":"geo:box","value":["1,4","3,2"]}',
            '{"type":"GeoProperty","value":{"type":"Polygon","coordinates":[[[2,1],[4,1],[4,3],[2,3],[2,1]]]}}',
        ),
        (
            '{"type":"geo:polygon","value":["0,0","0,1","1,1","0,0"]}',
            '{"type":"GeoProperty","value":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}}',
        ),
        ('{"type":"geo:polygon","value":["0,0","0,1"]}', '{"type":"Property","value":["0,0","0,1"]}'),
        (
            '{"type":"LanguageProperty","value":{"en":"x"}}',
            '{"type":"LanguageProperty","languageMap":{"en":"x"}}',
        ),
        ('{"type":"ListProperty","value":[1]}', '{"type":"ListProperty","valueList":[1]}'),
        ('{"type":["a"],"value":1}', '{"type":"Property","value":1}'),
        ('{"type":{},"value":null}', '{"type":"Property","value":{"@type":"@json","@value":null}}'),
    ],
)
def test_each_type_becomes_its_kind(attribute: str, expected: str) -> None:
    assert converted(attribute) == expected


def test_a_name_that_begins_with_ref_is_a_relationship_to_what_it_names() -> None:
    assert converted('{"type":"Text","value":"001"}', "refStore") == (
        '{"type":"Relationship","object":"urn:ngsi-ld:Store:001"}'
    )
    assert converted('{"type":"Number","value":1}', "refStore") == '{"type":"Property","value":1}'
    assert converted('{"type":"Text","value":"x"}', "reference") == '{"type":"Property","value":"x"}'


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('"unitCode":{"type":"Text","value":"CEL"}', '"unitCode":"CEL"'),
        ('"unitCode":{"type":"Number","value":1}', None),
        ('"timestamp":{"type":"DateTime","value":"2026-11-21T05:38:57Z"}', '"observedAt":"2026-11-21T05:38:57Z"'),
        (
            '"TimeInstant":{"type":"DateTime","value":"2026-11-21T05:38:57.5+01:00"}',
            '"observedAt":"2026-11-21T04:38:57.500Z"',
        ),
        (
            '"timestamp":{"type":"DateTime","value":"2026-11-21T05:38:57"}',
            '"observedAt":"2026-11-21T05:38:57.000Z"',
        ),
        ('"timestamp":{"type":"Text","value":"soon"}', '"timestamp":{"type":"Property","value":"soon"}'),
        ('"dateModified":{"type":"DateTime","value":"2026-11-21T05:00:00Z"}', '"modifiedAt":"2026-11-21T05:00:00Z"'),
        ('"datasetId":{"type":"Text","value":"urn:d:1"}', '"datasetId":"urn:d:1"'),
        ('"acc":{"type":"Number","value":0.10}', '"acc":{"type":"Property","value":0.10}'),
        (
            '"observedAt":{"type":"DateTime","value":"2026-01-01T00:00:00Z"},'
            '"timestamp":{"type":"DateTime","value":"2026-01-02T00:00:00Z"}',
            '"observedAt":"2026-01-01T00:00:00Z",'
            '"timestamp":{"type":"Property","value":{"@type":"DateTime","@value":"2026-01-02T00:00:00Z"}}',
        ),
    ],
)
def test_metadata_stand_beside_the_value(metadata: str, expected: str | None) -> None:
    attribute = f'{{"type":"Number","value":1,"metadata":{{{metadata}}}}}'
    if expected is None:
        with pytest.raises(MessageError, match="'unitCode' has the name of something else in NGSI-LD"):
            converted(attribute)
    else:
        assert converted(attribute) == f'{{"type":"Property","value":1,{expected}}}'


RECEIVED = {
    "id": "urn:ngsi-ld:Car:1",
    "type": ["Car", "Vehicle"],
    "scope": "/4wheels",
    "speed": [
        {"type": "Property", "value": orjson.Fragment(b"1.0E2")},
        {"type": "Property", "value": 2, "datasetId": "urn:gps"},
    ],
    "brand": {"type": "Property", "value": "Seat"},
}


def test_the_sources_own_entity_is_kept_and_gets_the_context_it_was_read_with() -> None:
    assert ngsi_ld.body({}, RECEIVED, context="https://city.example/context.jsonld") == (
        b'{"id":"urn:ngsi-ld:Car:1","type":["Car","Vehicle"],"scope":"/4wheels","speed":[{"type":"Property","value":1.0E2},'
        b'{"type":"Property","value":2,"datasetId":"urn:gps"}],"brand":{"type":"Property","value":"Seat"},'
        b'"@context":["https://city.example/context.jsonld",'
        b'"https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"]}'
    )


def test_a_context_that_came_with_the_entity_stays() -> None:
    text = ngsi_ld.body({}, {"id": "urn:a", "type": "T", "@context": "https://own"}, context="https://other")
    assert text == b'{"id":"urn:a","type":"T","@context":"https://own"}'


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (AttributeName("speed"), b'{"type":"Property","value":1.0E2}'),
        (AttributeName("speed", "urn:gps"), b'{"type":"Property","value":2,"datasetId":"urn:gps"}'),
    ],
)
def test_one_instance_of_one_attribute_of_the_sources_own_entity(attribute: AttributeName, value: bytes) -> None:
    assert ngsi_ld.body({}, RECEIVED, attribute) == (
        b'{"id":"urn:ngsi-ld:Car:1","type":["Car","Vehicle"],"scope":"/4wheels","speed":'
        + value
        + b',"@context":"https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"}'
    )


@pytest.mark.parametrize(
    ("entity", "attribute"),
    [
        ({"id": "i"}, None),
        ({"type": "T"}, None),
        ({"id": "i", "type": "T", "a": 7}, None),
        ({"id": "i", "type": "T", "a": {"value": 1, "metadata": {"m": 7}}}, None),
        ({"id": "i", "type": "T"}, AttributeName("a")),
        ({"id": "i", "type": "T", "a": {"value": "\ud800"}}, None),
    ],
)
def test_what_has_no_linked_data_form_is_rejected_data(
    entity: dict[str, object], attribute: AttributeName | None
) -> None:
    with pytest.raises(MessageError):
        ngsi_ld.body(entity, None, attribute)


@pytest.mark.parametrize("name", ["brand2", "speed"])
def test_an_attribute_or_instance_the_source_did_not_send_is_refused(name: str) -> None:
    with pytest.raises(MessageError, match="lacks the attribute"):
        ngsi_ld.body({}, RECEIVED, AttributeName(name, "urn:none"))
