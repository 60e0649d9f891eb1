"""Lines as Cygnus writes them, byte for byte, with its known corruptions corrected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from contexture.events import ContextIdentity, parse_json
from contexture.records.messages import MessageError, ngsi_bodies
from contexture.sources.ngsi.notifications.parsing import parse_notification

RECORDED = Path(__file__).parents[3] / "samples" / "orion"
CAR = {
    "id": "car1",
    "type": "car",
    "speed": {"type": "float", "value": "112.9", "metadata": {}},
    "oil_level": {"type": "float", "value": "74.6", "metadata": {}},
}
HEAD = (
    b'{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1429535775000}],"body":'
)


def written(entity: object, attribute: str | None = None) -> bytes:
    assert isinstance(entity, dict)
    return ngsi_bodies.line(
        service="vehicles", service_path="/4wheels", timestamp_ms=1429535775000, entity=entity, attribute=attribute
    )


def body_of(entity: object, attribute: str | None = None) -> bytes:
    text = written(entity, attribute)
    assert text.startswith(HEAD)
    return text.removeprefix(HEAD).removesuffix(b"}")


def value_of(literal: bytes) -> bytes:
    """The bytes that a value of these bytes is written as."""
    entity = parse_json(b'{"id":"i","type":"t","a":{"type":"T","value":' + literal + b',"metadata":{}}}')
    text = body_of(entity)
    head = b'{"attributes":[{"name":"a","type":"T","value":'
    tail = b',"metadatas":[]}],"type":"t","id":"i"}'
    assert text.startswith(head)
    assert text.endswith(tail)
    return text.removeprefix(head).removesuffix(tail)


def test_the_measured_line_without_is_pattern() -> None:
    assert written(CAR) == (
        b'{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1429535775000}],'
        b'"body":{"attributes":[{"name":"speed","type":"float","value":"112.9","metadatas":[]},'
        b'{"name":"oil_level","type":"float","value":"74.6","metadatas":[]}],"type":"car","id":"car1"}}'
    )


@pytest.mark.parametrize(
    "literal", [b"1.0", b"1E5", b"0.10", b"12345678901234567890123", b"-0", b"1e-7", b"7", b"-1.5", b"1E400"]
)
def test_number_literals_are_copied(literal: bytes) -> None:
    assert value_of(literal) == literal


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (b'"<>&=\'"', b'"\\u003c\\u003e\\u0026\\u003d\\u0027"'),
        ('"\u2028\u2029"'.encode(), b'"\\u2028\\u2029"'),
        (b'"\\u0000\\u001f\\b\\t\\n\\f\\r"', b'"\\u0000\\u001f\\b\\t\\n\\f\\r"'),
        (b'"/ \x7f"', b'"/ \x7f"'),
        ('"é😀"'.encode(), '"é😀"'.encode()),
        (b'"\\"\\\\"', b'"\\"\\\\"'),
        (b'"\\\\u003c<"', b'"\\\\u003c\\u003c"'),
        (b'{"a=b":{"<":1.0}}', b'{"a\\u003db":{"\\u003c":1.0}}'),
        (b"true", b"true"),
        (b'{"a":null,"b":[null,{"c":null}]}', b'{"b":[null,{}]}'),
        (b'[null,1E5,{"a":null,"b":1E5}]', b'[null,1E5,{"b":1E5}]'),
        (b'"null"', b'"null"'),
        (b"[]", b"[]"),
    ],
)
def test_values_are_written_html_safe_and_without_null_members(literal: bytes, expected: bytes) -> None:
    assert value_of(literal) == expected


def test_names_and_identifiers_are_written_html_safe() -> None:
    entity = {
        "id": "a=b",
        "type": "c&d",
        "e'f": {"type": "<g>", "value": 1, "metadata": {"h=i": {"type": "j", "value": 2}}},
    }
    assert body_of(entity) == (
        b'{"attributes":[{"name":"e\\u0027f","type":"\\u003cg\\u003e","value":1,"metadatas":'
        b'[{"name":"h\\u003di","type":"j","value":2}]}],"type":"c\\u0026d","id":"a\\u003db"}'
    )


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"type": "T", "value": None, "metadata": {}}, b'{"name":"a","type":"T","metadatas":[]}'),
        ({"type": "T", "value": 1}, b'{"name":"a","type":"T","value":1,"metadatas":[]}'),
        ({"type": "T", "value": 1, "metadata": None}, b'{"name":"a","type":"T","value":1}'),
        ({"value": 1, "unknown": 2}, b'{"name":"a","value":1,"metadatas":[]}'),
        (
            {"type": "T", "value": 1, "metadata": {"m": {"type": "U", "value": None}, "n": {"value": {"x": None}}}},
            b'{"name":"a","type":"T","value":1,"metadatas":[{"name":"m","type":"U"},{"name":"n","value":{}}]}',
        ),
    ],
)
def test_members_that_are_null_or_unknown_are_left_out(attribute: dict[str, object], expected: bytes) -> None:
    entity = {"id": "i", "type": "t", "a": attribute}
    assert body_of(entity) == b'{"attributes":[' + expected + b'],"type":"t","id":"i"}'


def test_an_entity_without_attributes_or_type_is_written() -> None:
    assert body_of({"id": "i"}) == b'{"attributes":[],"id":"i"}'


def test_attributes_stand_in_the_order_received() -> None:
    entity = {"z": {"value": 1}, "id": "i", "b": {"value": 2}, "type": "t", "a": {"value": 3}}
    attributes = json.loads(body_of(entity))["attributes"]
    assert [attribute["name"] for attribute in attributes] == ["z", "b", "a"]


@pytest.mark.parametrize("name", ["speed", "oil_level"])
def test_a_line_for_one_attribute_holds_that_attribute(name: str) -> None:
    attributes = json.loads(body_of(CAR, name))["attributes"]
    assert [attribute["name"] for attribute in attributes] == [name]


def test_an_attribute_called_like_no_member_is_refused() -> None:
    with pytest.raises(MessageError, match="lacks the attribute"):
        written(CAR, "colour")


def test_each_line_carries_its_own_service_path() -> None:
    lines = [
        ngsi_bodies.line(service="s", service_path=path, timestamp_ms=1, entity={"id": "i"}) for path in ("/a", "/b")
    ]
    assert ngsi_bodies.join(lines) == (
        b'{"headers":[{"fiware-service":"s"},{"fiware-servicePath":"/a"},{"timestamp":1}],"body":{"attributes":[],"id":"i"}}\n'
        b'{"headers":[{"fiware-service":"s"},{"fiware-servicePath":"/b"},{"timestamp":1}],"body":{"attributes":[],"id":"i"}}'
    )


def test_a_quote_in_service_or_path_is_escaped_and_nothing_else_there() -> None:
    text = ngsi_bodies.line(service='a"b\\', service_path="/c=d", timestamp_ms=1, entity={"id": "i"})
    assert text.startswith(
        b'{"headers":[{"fiware-service":"a\\"b\\\\"},{"fiware-servicePath":"/c=d"},{"timestamp":1}],'
    )
    assert json.loads(text)["headers"][0] == {"fiware-service": 'a"b\\'}


@pytest.mark.parametrize(
    "entity",
    [
        {"id": "i", "a": 7},
        {"id": "i", "a": {"value": 1, "metadata": 7}},
        {"id": "i", "a": {"value": 1, "metadata": {"m": 7}}},
        {"id": "\ud800"},
    ],
)
def test_what_cannot_be_written_is_rejected_data(entity: dict[str, object]) -> None:
    with pytest.raises(MessageError):
        written(entity)


MEASURED_AS_NGSIV1 = {
    "type": "car",
    "isPattern": "false",
    "id": "car1",
    "attributes": [
        {"name": "speed", "type": "float", "value": "112.9"},
        {"name": "oil_level", "type": "float", "value": "74.6"},
    ],
}


def of_element(element: dict[str, object], attribute: str | None = None) -> bytes:
    return ngsi_bodies.line(
        service="vehicles",
        service_path="/4wheels",
        timestamp_ms=1429535775000,
        entity={},
        attribute=attribute,
        context_element=element,
    )


def test_the_measured_line_of_what_came_as_ngsiv1() -> None:
    assert of_element(MEASURED_AS_NGSIV1) == (
        b'{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1429535775000}],'
        b'"body":{"attributes":[{"name":"speed","type":"float","value":"112.9","metadatas":[]},'
        b'{"name":"oil_level","type":"float","value":"74.6","metadatas":[]}],"type":"car","isPattern":"false","id":"car1"}}'
    )


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (
            {"value": 1, "name": "a", "metadatas": [{"value": "C", "type": "string", "name": "unit"}]},
            b'{"name":"a","value":1,"metadatas":[{"value":"C","type":"string","name":"unit"}]}',
        ),
        ({"name": "a", "type": "T", "value": None}, b'{"name":"a","type":"T","metadatas":[]}'),
        ({"name": "a", "value": 1, "metadatas": None}, b'{"name":"a","value":1}'),
        ({"name": "a", "value": 1, "metadatas": [], "unknown": 1}, b'{"name":"a","value":1,"metadatas":[]}'),
    ],
)
def test_metadatas_of_ngsiv1_stay_as_received(attribute: dict[str, object], expected: bytes) -> None:
    text = of_element({"id": "i", "type": None, "isPattern": None, "attributes": [attribute]})
    assert text.endswith(b'"body":{"attributes":[' + expected + b'],"id":"i"}}')


def test_all_entries_of_one_attribute_of_ngsiv1_are_its_line() -> None:
    entries: list[object] = [{"name": name, "value": value} for name, value in (("a", 1), ("b", 2), ("a", 3))]
    body = json.loads(of_element({"id": "i", "attributes": entries}, "a"))["body"]
    assert [entry["value"] for entry in body["attributes"]] == [1, 3]


def test_an_attribute_of_ngsiv1_that_is_not_there_is_refused() -> None:
    with pytest.raises(MessageError, match="lacks the attribute"):
        of_element(MEASURED_AS_NGSIV1, "colour")


def test_a_recorded_notification_is_the_line_that_the_rules_say() -> None:
    # Written by hand from the rules: order of members, literals, escapes, metadata as a list, no isPattern.
    notified = json.loads((RECORDED / "notifications.json").read_text())[0]
    entity = parse_json(json.dumps(notified["body"]["data"][0]).encode())
    assert written(entity) == (
        b'{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1429535775000}],'
        b'"body":{"attributes":['
        b'{"name":"speed","type":"float","value":112.9,"metadatas":[{"name":"accuracy","type":"Number","value":2}]},'
        b'{"name":"oil_level","type":"float","value":74.6,"metadatas":[]},'
        b'{"name":"when","type":"DateTime","value":"2026-01-02T03:04:05.000Z","metadatas":[]},'
        b'{"name":"location","type":"geo:json","value":{"type":"Point","coordinates":[2.1,41.3]},"metadatas":[]}'
        b'],"type":"car","id":"car1"}}'
    )


@pytest.mark.parametrize(
    ("number", "car", "speed"),
    [
        (1, "car2", 20),
        (2, "car3", 30),
        (3, "car4", 40),
        (4, "car5", 50),
        (5, "car6", 60),
        (6, "car7", 70),
        (7, "car2", 20),
        (8, "car3", 30),
    ],
)
def test_every_other_recorded_notification_is_its_line(number: int, car: str, speed: int) -> None:
    notified = json.loads((RECORDED / "notifications.json").read_text())[number]
    (event,) = parse_notification(notified["headers"], json.dumps(notified["body"]).encode())
    identity = event.identity
    assert isinstance(identity, ContextIdentity)

    line = ngsi_bodies.line(
        service=identity.service,
        service_path=identity.service_path,
        timestamp_ms=1429535775000,
        entity=cast("dict[str, object]", parse_json(event.body or b"")),
    )

    assert line.decode() == (
        '{"headers":[{"fiware-service":"vehicles"},{"fiware-servicePath":"/4wheels"},{"timestamp":1429535775000}],'
        f'"body":{{"attributes":[{{"name":"speed","type":"Number","value":{speed},"metadatas":[]}}],'
        f'"type":"car","id":"{car}"}}}}'
    )


def test_everything_at_once_is_the_line_that_the_rules_say() -> None:
    entity = parse_json(
        b'{"type":"R&D","b":{"value":{"x":null,"y":[null,1.0,{"z":null}],"k=":"\\u003c\\/"},"type":null,'
        b'"metadata":{"unit":{"value":"\\u00b0C","type":"Text"},"none":{"type":"None","value":null}},"unknown":1},'
        b'"a":{"metadata":null,"value":1E5,"type":"Number"},"id":"it\'s"}'
    )
    line = ngsi_bodies.line(
        service="city", service_path='/a"b', timestamp_ms=1700000000001, entity=cast("dict[str, object]", entity)
    )
    assert line.decode() == (
        '{"headers":[{"fiware-service":"city"},{"fiware-servicePath":"/a\\"b"},{"timestamp":1700000000001}],'
        '"body":{"attributes":['
        '{"name":"b","value":{"y":[null,1.0,{}],"k\\u003d":"\\u003c/"},'
        '"metadatas":[{"name":"unit","type":"Text","value":"°C"},{"name":"none","type":"None"}]},'
        '{"name":"a","type":"Number","value":1E5}'
        '],"type":"R\\u0026D","id":"it\\u0027s"}}'
    )


def test_a_sub_batch_has_one_newline_between_lines_and_none_at_the_end() -> None:
    assert ngsi_bodies.join([b"a"]) == b"a"
    assert ngsi_bodies.join([b"a", b"b", b"c"]) == b"a\nb\nc"


def test_a_newline_inside_of_a_value_never_ends_a_line() -> None:
    assert b"\n" not in written({"id": "i\n", "type": "t\r\n", "a": {"type": "T", "value": "\n\u2028\x85"}})
