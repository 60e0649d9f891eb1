"""From an entity to the topics, key and value of its records."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from builders.outboxes import publication
from contexture.events import AttributeName, ContextIdentity, parse_json
from contexture.records.messages import MessageError
from contexture.records.messages.content import Content
from contexture.records.messages.rendering import cygnus_line_maker, renderer
from contexture.records.topics import TopicNameError

CAR = ContextIdentity("vehicles", "/4wheels", "car1", "car")
BODY = (
    b'{"id":"car1","type":"car","speed":{"type":"Number","value":1.0E2,"metadata":{}},'
    b'"colour":{"type":"Text","value":"red","metadata":{}}}'
)
RECEIVED_MS = 1_772_352_000_123
TOPIC = "vehiclesxffffx002f4wheelsxffffcar1xffffcar"


def rendered(identity: ContextIdentity = CAR, attribute: str | None = None, **changes: Any) -> Any:
    entity: Any = parse_json(BODY)
    name = AttributeName(attribute) if attribute is not None else None
    return renderer(publication(**changes))(identity, entity, name, RECEIVED_MS)


def test_an_entity_goes_as_it_was_sent_to_its_own_topic_under_its_identity():
    assert rendered() == ((TOPIC,), b'["vehicles","/4wheels","car1","car"]', BODY)


def test_an_attribute_goes_alone_to_its_own_topic_under_its_own_key():
    topics, key, value = rendered(attribute="speed", topics={"data_model": "dm-by-attribute"})

    assert topics == (f"{TOPIC}xffffspeed",)
    assert key == b'["vehicles","/4wheels","car1","car","speed"]'
    assert value == b'{"id":"car1","type":"car","speed":{"type":"Number","value":1.0E2,"metadata":{}}}'


def test_lines_carry_their_own_path_and_time_of_reception():
    changes = {"topics": {"keep": "history"}, "message": {"format": "cygnus-lines"}}

    whole, alone = rendered(**changes).value, rendered(attribute="colour", **changes).value

    assert orjson.loads(whole) == {
        "headers": [
            {"fiware-service": "vehicles"},
            {"fiware-servicePath": "/4wheels"},
            {"timestamp": 1_772_352_000_123},
        ],
        "body": {
            "attributes": [
                {"name": "speed", "type": "Number", "value": 100.0, "metadatas": []},
                {"name": "colour", "type": "Text", "value": "red", "metadatas": []},
            ],
            "type": "car",
            "id": "car1",
        },
    }
    assert b'"value":1.0E2' in whole
    assert [attribute["name"] for attribute in orjson.loads(alone)["body"]["attributes"]] == ["colour"]


def test_fixed_topics_share_one_key_and_one_value():
    fixed = {"naming": "fixed", "topics": ["FOO", "BAR"]}

    assert rendered(topics=fixed) == (("FOO", "BAR"), b'["vehicles","/4wheels","car1","car"]', BODY)


@pytest.mark.parametrize(
    ("choice", "key"),
    [("none", None), ("topic", TOPIC.encode()), ("id", b"car1"), ("type", b"car"), ("service", b"vehicles")],
)
def test_the_key_is_what_the_publication_says(choice: str, key: bytes | None):
    source = {"kind": "ngsi", "connection": "c", "service": "vehicles", "detect_deletions": False}
    message = {"key": choice}

    assert rendered(source=source, message=message, topics={"keep": "history"}).key == key


def test_a_name_that_kafka_refuses_and_a_body_that_json_refuses_are_rejected_data():
    with pytest.raises(TopicNameError, match="has 290 characters"):
        rendered(ContextIdentity("vehicles", "/4wheels", "c" * 252, "car"))

    lines = renderer(publication(topics={"keep": "history"}, message={"format": "cygnus-lines"}))
    with pytest.raises(MessageError, match="is not an object with a value"):
        lines(CAR, {"id": "car1", "type": "car", "speed": 5}, None, RECEIVED_MS)


def test_an_attributes_value_is_the_key_of_all_records_of_its_entity():
    changes = {"message": {"key": "colour"}, "topics": {"data_model": "dm-by-attribute", "keep": "history"}}

    assert rendered(attribute="speed", **changes).key == b"red"


def test_the_context_element_of_an_entity_and_of_one_attribute():
    changes = {"message": {"format": "ngsiv1"}}

    assert rendered(**changes).value == (
        b'{"id":"car1","type":"car","isPattern":"false","attributes":['
        b'{"name":"speed","type":"Number","value":1.0E2,"metadatas":[]},'
        b'{"name":"colour","type":"Text","value":"red","metadatas":[]}]}'
    )
    assert rendered(attribute="colour", **changes).value == (
        b'{"id":"car1","type":"car","isPattern":"false","attributes":['
        b'{"name":"colour","type":"Text","value":"red","metadatas":[]}]}'
    )


def test_linked_data_of_an_entity_and_of_one_attribute():
    changes = {"message": {"format": "ngsi-ld"}}
    core = b'"@context":"https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"}'

    assert rendered(**changes).value == (
        b'{"id":"urn:ngsi-ld:car:car1","type":"car","speed":{"type":"Property","value":1.0E2},'
        b'"colour":{"type":"Property","value":"red"},' + core
    )
    assert rendered(attribute="colour", **changes).value == (
        b'{"id":"urn:ngsi-ld:car:car1","type":"car","colour":{"type":"Property","value":"red"},' + core
    )


def test_the_forms_that_a_source_sent_are_handed_on():
    entity: Any = parse_json(BODY)
    received = {"id": "urn:ngsi-ld:car:car1", "type": "car", "speed": {"type": "Property", "value": 1}}
    element = {"id": "car1", "type": "car", "isPattern": "true", "attributes": []}
    lines = {"message": {"format": "cygnus-lines"}, "topics": {"keep": "history"}}

    def body(**changes: Any) -> bytes:
        return renderer(publication(**changes))(CAR, entity, None, RECEIVED_MS, received, element).value

    assert body(message={"format": "ngsi-ld"}).startswith(
        b'{"id":"urn:ngsi-ld:car:car1","type":"car","speed":{"type":"Property","value":1},"@context":'
    )
    assert body(message={"format": "ngsiv1"}) == b'{"id":"car1","type":"car","isPattern":"true","attributes":[]}'
    assert body(**lines).endswith(b'"body":{"attributes":[],"type":"car","isPattern":"true","id":"car1"}}')


def test_an_instance_of_an_attribute_is_under_its_own_name_where_there_are_no_instances():
    whole = {"id": "car1", "type": "car", "speed": {"value": 1}, "speed:urn:gps": {"value": 2}}

    def body(form: str) -> bytes:
        write = renderer(publication(message={"format": form}, topics={"data_model": "dm-by-attribute"}))
        return write(CAR, whole, AttributeName("speed", "urn:gps"), RECEIVED_MS).value

    assert body("ngsiv2") == b'{"id":"car1","type":"car","speed:urn:gps":{"value":2}}'
    assert orjson.loads(body("ngsi-ld"))["speed"] == {"type": "Property", "value": 2}


MAPPINGS = """{"serviceMappings": [{"originalService": "^vehicles$", "newService": "fleet", "servicePathMappings": [
  {"originalServicePath": "/4wheels", "newServicePath": "/cars", "entityMappings": [
    {"originalEntityId": "car(.*)", "originalEntityType": "car", "newEntityId": "c$1", "newEntityType": "auto",
     "attributeMappings": [{"originalAttributeName": "speed", "originalAttributeType": "Number",
                            "newAttributeName": "pace", "newAttributeType": "Number"}]}]}]}]}"""


def test_name_mappings_change_the_topic_and_the_lines_service_and_nothing_else():
    mapped = {"enable_name_mappings": True, "name_mappings": "m.json", "name_mappings_content": MAPPINGS}
    topics = {"data_model": "dm-by-attribute", "keep": "history", **mapped}

    found = rendered(attribute="speed", topics=topics, message={"format": "cygnus-lines"})

    assert found.topics == ("fleetxffffx002fcarsxffffc1xffffautoxffffpace",)
    assert found.key == b'["vehicles","/4wheels","car1","car","speed"]'
    assert found.value == (
        b'{"headers":[{"fiware-service":"fleet"},{"fiware-servicePath":"/4wheels"},{"timestamp":1772352000123}],'
        b'"body":{"attributes":[{"name":"speed","type":"Number","value":1.0E2,"metadatas":[]}],"type":"car","id":"car1"}}'
    )


def test_the_header_of_a_line_has_the_service_that_its_maker_returns():
    make = cygnus_line_maker(lambda identity, attribute: f"mapped_{identity.service}_{attribute}")
    entity: Any = parse_json(BODY)

    text = make(Content(CAR, entity, AttributeName("speed"), 1))

    assert text.startswith(
        b'{"headers":[{"fiware-service":"mapped_vehicles_speed"},{"fiware-servicePath":"/4wheels"},{"timestamp":1}],'
    )


def test_mapped_names_make_the_topic_and_the_service_of_a_line_and_nothing_else():
    mappings = (
        '{"serviceMappings":[{"newService":"fleet","servicePathMappings":[{"newServicePath":"/all","entityMappings":'
        '[{"newEntityId":"any","attributeMappings":[{"originalAttributeName":"speed","originalAttributeType":"Number",'
        '"newAttributeName":"v"}]}]}]}]}'
    )
    names = {"enable_name_mappings": True, "name_mappings": "n.json", "name_mappings_content": mappings}
    topics = {"keep": "history", "data_model": "dm-by-attribute", **names}

    found = rendered(attribute="speed", topics=topics, message={"format": "cygnus-lines"})

    assert found.topics == ("fleetxffffx002fallxffffanyxffffcarxffffv",)
    line = orjson.loads(found.value)
    assert line["headers"][:2] == [{"fiware-service": "fleet"}, {"fiware-servicePath": "/4wheels"}]
    assert (line["body"]["id"], line["body"]["attributes"][0]["name"]) == ("car1", "speed")


def test_grouping_rules_change_the_topic_and_nothing_of_the_line():
    rules = (
        '{"grouping_rules":[{"id":1,"fields":["entityType"],"regex":"car","destination":"cars",'
        '"fiware_service_path":"/all"}]}'
    )
    grouped = {"enable_grouping": True, "grouping_rules": "g.json", "grouping_rules_content": rules}

    found = rendered(topics={"keep": "history", **grouped}, message={"format": "cygnus-lines"})

    assert found.topics == ("vehiclesxffffx002fallxffffcars",)
    assert found.key == b'["vehicles","/4wheels","car1","car"]'
    assert found.value == (
        b'{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1772352000123}],'
        b'"body":{"attributes":[{"name":"speed","type":"Number","value":1.0E2,"metadatas":[]},'
        b'{"name":"colour","type":"Text","value":"red","metadatas":[]}],"type":"car","id":"car1"}}'
    )
