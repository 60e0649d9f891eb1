"""Numbers that came as texts."""

from __future__ import annotations

import orjson
import pytest

from contexture.sources.ngsi.entity import ParsedEntity, parse_entity
from contexture.sources.ngsi.rules.values import coerce_numbers


def entity(kind: str, value: object) -> ParsedEntity:
    attributes = {"a": {"type": "Text", "value": "1"}, "speed": {"type": kind, "value": value, "metadata": {}}}
    body = orjson.dumps({"id": "car1", "type": "car", **attributes, "z": {"type": "Number", "value": 1}})
    return parse_entity(body, service="vehicles")


@pytest.mark.parametrize("kind", ["Number", "Integer", "Float"])
@pytest.mark.parametrize(
    "literal", ["0", "-0", "12", "1.50", "-1.5e3", "1E5", "12345678901234567890123", "0.10", "1E400"]
)
def test_a_text_that_is_a_number_is_written_as_that_number(kind: str, literal: str) -> None:
    read = coerce_numbers(entity(kind, literal))

    assert orjson.dumps(read.entity) == (
        b'{"id":"car1","type":"car","a":{"type":"Text","value":"1"},"speed":{"type":"%s","value":%s,"metadata":{}},'
        b'"z":{"type":"Number","value":1}}' % (kind.encode(), literal.encode())
    )
    assert orjson.dumps(read.attributes["speed"]) == orjson.dumps(read.entity["speed"])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("Number", "1,5"),
        ("Number", "012"),
        ("Number", " 1"),
        ("Number", "1\n"),
        ("Number", "+1"),
        ("Number", ".5"),
        ("Number", "NaN"),
        ("Number", "\u0661"),
        ("Number", ""),
        ("Number", 12),
        ("Number", ["1"]),
        ("Text", "12"),
    ],
)
def test_everything_else_stays_as_it_is(kind: str, value: object) -> None:
    parsed = entity(kind, value)

    assert coerce_numbers(parsed) is parsed


def test_attributes_of_another_shape_stay_as_they_are() -> None:
    parsed = parse_entity(b'{"id":"car1","type":"car","a":"1","b":{"type":["Number"],"value":"1"}}', service="v")

    assert coerce_numbers(parsed) is parsed
