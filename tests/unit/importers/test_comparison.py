"""Comparing what Cygnus and Contexture published."""

from __future__ import annotations

import pytest

from contexture.operations.actions.topic_comparison import TopicContents, compare
from contexture.records.messages import ngsi_bodies

CAR = ("s", "/p", "car1", "car")


def number(value: object, **metadata: object) -> dict[str, object]:
    return {"type": "Number", "value": value, "metadata": metadata}


def line(entity: dict[str, object], moment: int = 1) -> bytes:
    entity = {"id": "car1", "type": "car", **entity}
    return ngsi_bodies.line(service="s", service_path="/p", timestamp_ms=moment, entity=entity)


def side(*values: bytes | None) -> TopicContents:
    contents = TopicContents()
    for value in values:
        contents.add(value)
    return contents


def test_order_and_times_do_not_count():
    unit = {"type": "Text", "value": "km/h"}
    left = side(line({"speed": number(1, a=unit, b=unit), "oil": number(2)}, moment=5))
    right = side(line({"oil": number(2), "speed": number(1, b=unit, a=unit)}, moment=9))

    found = compare(left, right)

    assert found.are_equal
    assert found.equal == 1


def test_what_came_as_ngsiv1_is_the_same_with_is_pattern():
    element = {"id": "car1", "type": "car", "isPattern": "false", "attributes": [{"name": "a", "value": "1"}]}
    received = ngsi_bodies.line(service="s", service_path="/p", timestamp_ms=1, entity={}, context_element=element)

    assert compare(side(received), side(line({"a": {"value": "1"}}))).are_equal


def test_the_newest_value_of_each_attribute_counts():
    partial = ngsi_bodies.join([line({"speed": number(1)}, 1), line({"oil": number(2)}, 2)])
    late = line({"speed": number(9)}, 0)

    assert compare(side(partial, late), side(line({"speed": number(1), "oil": number(2)}, 3))).are_equal


def test_what_differs_is_named():
    left = side(line({"speed": number(1), "oil": number(2), "old": number(3)}), line({"id": "car2"}))
    right = side(line({"speed": number(4), "oil": number(2), "new": number(3)}), line({"id": "car3"}))

    found = compare(left, right)

    assert not found.are_equal
    assert found.only_left == (("s", "/p", "car2", "car"),)
    assert found.only_right == (("s", "/p", "car3", "car"),)
    (differing,) = found.differing
    assert differing.entity == CAR
    assert (differing.differing, differing.only_left, differing.only_right) == (("speed",), ("old",), ("new",))


def test_other_literals_are_other_values():
    written = line({"speed": number(1)})

    assert not compare(side(written), side(written.replace(b'"value":1', b'"value":1.0'))).are_equal


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b"no json", b'{"headers":[1],"body":{}}', line({})[:-2]])
def test_what_is_no_line_is_counted(value: bytes):
    assert side(value).unreadable == 1


def test_tombstones_have_no_line():
    contents = side(None)

    assert (contents.tombstones, contents.lines, contents.entities) == (1, 0, {})
