"""The row rules: each shown to find what it is for, with its severity, and to leave clean entities alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events.rules import Violation
from contexture.sources.ngsi.entity import EntityError, parse_entity
from contexture.sources.ngsi.rules.catalogue import Bounds, EntityRuleOptions, severities
from contexture.sources.ngsi.rules.checks import check_entity, unreadable
from tests.samples_location import samples_or_skip

NOW = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
POINT = '{"type":"Point","coordinates":[2.1,41.3]}'


def violations_of(body: str | bytes, options: EntityRuleOptions | None = None) -> list[Violation]:
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return check_entity(parse_entity(raw, service="s"), options or EntityRuleOptions(reference_time=NOW))


def broken(body: str | bytes, options: EntityRuleOptions | None = None) -> list[tuple[str, str]]:
    return [(violation.rule, violation.severity) for violation in violations_of(body, options)]


def broken_by_attribute(attribute: str, options: EntityRuleOptions | None = None) -> list[tuple[str, str]]:
    return broken(f'{{"id":"car1","type":"car","a":{attribute}}}', options)


def test_a_clean_entity_breaks_no_rule() -> None:
    body = (
        '{"id":"urn:ngsi-ld:Car:1","type":"Car","speed":{"type":"Number","value":112.9,"metadata":{"accuracy":'
        '{"type":"Number","value":2}}},"name":{"type":"Text","value":"Röd bil, 4 hjul","metadata":{}},'
        '"moving":{"type":"Boolean","value":false},"seen":{"type":"DateTime","value":"2026-11-21T05:38:57.682Z"},'
        f'"location":{{"type":"geo:json","value":{POINT}}},"address":{{"type":"StructuredValue","value":{{"a":[1,null]}}}},'
        '"nothing":{"type":"None","value":null},"dateModified":{"type":"DateTime","value":"2026-11-21T05:38:57.734Z"}}'
    )
    assert broken(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"type":"t"}', [("id-missing", "error")]),
        ('{"id":null,"type":"t"}', [("id-missing", "error")]),
        ('{"id":"","type":"t"}', [("id-missing", "error")]),
        ('{"id":7,"type":"t"}', [("id-type", "error")]),
        ('{"id":"i"}', [("type-missing", "error")]),
        ('{"id":"i","type":""}', [("type-missing", "error")]),
        ('{"id":"i","type":7}', [("type-missing", "error")]),
        ('{"id":"a b","type":"t"}', [("id-syntax", "warning")]),
        ('{"id":"é","type":"t"}', [("id-syntax", "warning")]),
        ('{"id":"https://a/b#c","type":"t"}', [("id-syntax", "warning")]),
        (f'{{"id":"{"i" * 256}","type":"t"}}', []),
        (f'{{"id":"{"i" * 257}","type":"t"}}', [("id-syntax", "warning")]),
        ('{"id":"i","type":"a(b"}', [("type-syntax", "warning")]),
        ('{"id":"i","type":"t","a b":{"value":1}}', [("attr-syntax", "warning")]),
        ('{"id":"i","type":"t","":{"value":1}}', [("attr-syntax", "warning")]),
        ('{"id":"i","type":"t","geo:distance":{"value":1}}', [("attr-syntax", "warning")]),
        ('{"id":"i","type":"t","*":{"value":1}}', [("attr-syntax", "warning")]),
    ],
)
def test_identifiers(body: str, expected: list[tuple[str, str]]) -> None:
    assert broken(body) == expected


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("7", [("attr-shape", "error")]),
        ("null", [("attr-shape", "error")]),
        ('{"type":"Number"}', [("attr-shape", "error")]),
        ('[{"value":1}]', [("attr-shape", "error")]),
        ('{"value":1,"metadata":[1]}', [("attr-shape", "error")]),
        ('{"value":1,"metadata":{"m":{"type":"Number"}}}', [("attr-shape", "error")]),
        ('{"value":1}', []),
        ('{"type":null,"value":1}', []),
        ('{"type":7,"value":1}', [("attr-syntax", "warning")]),
        ('{"type":"a b","value":1}', [("attr-syntax", "warning")]),
        ('{"type":"T","value":1,"metadata":{"a/b":{"value":1}}}', [("attr-syntax", "warning")]),
        ('{"type":"T","value":1,"metadata":{"m":{"type":"a b","value":1}}}', [("attr-syntax", "warning")]),
    ],
)
def test_shape_and_names_of_attributes(attribute: str, expected: list[tuple[str, str]]) -> None:
    assert broken_by_attribute(attribute) == expected


@pytest.mark.parametrize("kind", ["Number", "Integer", "Float"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12", []),
        ("1.0E5", []),
        ("9007199254740992", []),
        ("9007199254740993", [("number-precision", "warning")]),
        ("-9007199254740993", [("number-precision", "warning")]),
        ("12345678901234567890123", [("number-precision", "warning")]),
        ("1E300", [("number-precision", "warning")]),
        ('"12"', [("number-string", "error")]),
        ('"NaN"', [("number-string", "error")]),
        ("true", [("number-string", "error")]),
        ("[1]", [("number-string", "error")]),
        ("{}", [("number-string", "error")]),
        ("null", [("null-value", "warning")]),
    ],
)
def test_numbers(kind: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert broken_by_attribute(f'{{"type":"{kind}","value":{value}}}') == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", []), ("false", []), ('"yes"', "error"), ("0", "error"), ("1", "error"), ("[]", "error")],
)
def test_booleans(value: str, expected: object) -> None:
    found = [("bool-string", expected)] if expected else []
    assert broken_by_attribute(f'{{"type":"Boolean","value":{value}}}') == found


@pytest.mark.parametrize("kind", ["DateTime", "ISO8601"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2016-11-30T07:00:00.00Z", []),
        ("2021-03-11T15:51:02+05:30", []),
        ("2026-11-22T05:59:59Z", []),
        ("2026-11-22T06:00:01Z", [("datetime-range", "warning")]),
        ("1989-12-31T23:59:59Z", [("datetime-range", "warning")]),
        ("9999-12-31T23:59:59-14:00", [("datetime-range", "warning")]),
        ("0001-01-01T00:00:00+14:00", [("datetime-range", "warning")]),
        ("2016-12-07T11:10:00", [("datetime", "warning")]),
        ("2016-12-07", [("datetime", "warning")]),
        ("2016-12-07T11:10:00/2016-12-07T11:15:00", [("datetime", "warning")]),
        ("2016-12-07 11:10:00Z", [("datetime", "warning")]),
        ("2016-13-07T11:10:00Z", [("datetime", "warning")]),
        ("today", [("datetime", "warning")]),
        ("", [("datetime", "warning")]),
    ],
)
def test_moments(kind: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert broken_by_attribute(f'{{"type":"{kind}","value":"{value}"}}') == expected


def test_a_moment_that_is_no_text_is_no_moment() -> None:
    assert broken_by_attribute('{"type":"DateTime","value":1480489200}') == [("datetime", "warning")]


def test_an_interval_is_reported_as_one() -> None:
    body = '{"id":"i","type":"t","a":{"type":"DateTime","value":"2016-12-07T11:10:00Z/2016-12-07T11:15:00Z"}}'
    assert violations_of(body) == [
        Violation(
            "datetime",
            "warning",
            "'a' is an interval, not a moment: '2016-12-07T11:10:00Z/2016-12-07T11:15:00Z'",
        )
    ]


SQUARE = "[[0,0],[0,1],[1,1],[0,0]]"


@pytest.mark.parametrize(
    "geometry",
    [
        POINT,
        '{"type":"Point","coordinates":[2.1,41.3,120]}',
        '{"type":"Point","coordinates":[2.10,4.13E1]}',
        '{"type":"MultiPoint","coordinates":[[0,0]]}',
        '{"type":"LineString","coordinates":[[0,0],[1,1]]}',
        '{"type":"MultiLineString","coordinates":[[[0,0],[1,1]]]}',
        f'{{"type":"Polygon","coordinates":[{SQUARE}]}}',
        '{"type":"Polygon","coordinates":[[[0.10,0],[0,1],[1,1],[0.1,0]]]}',
        f'{{"type":"MultiPolygon","coordinates":[[{SQUARE}]]}}',
    ],
)
def test_the_six_geometries_are_accepted(geometry: str) -> None:
    assert broken_by_attribute(f'{{"type":"geo:json","value":{geometry}}}') == []


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ('"41.3, 2.1"', "should be a GeoJSON geometry"),
        ("{}", "geometry type null"),
        ('{"type":["Point"],"coordinates":[2.1,41.3]}', "geometry type an array"),
        ('{"type":"Circle","coordinates":[2.1,41.3]}', "geometry type 'Circle'"),
        ('{"type":"Feature","geometry":{}}', "geometry type 'Feature'"),
        ('{"type":"Point"}', r"is not \[longitude, latitude\]"),
        ('{"type":"Point","coordinates":[2.1]}', r"is not \[longitude, latitude\]"),
        ('{"type":"Point","coordinates":["2.1","41.3"]}', "are not numbers"),
        ('{"type":"Point","coordinates":[true,false]}', "are not numbers"),
        ('{"type":"Point","coordinates":[41.3,120.1]}', r"out of range \(are they swapped\?\)"),
        ('{"type":"Point","coordinates":[200,41.3]}', "out of range$"),
        ('{"type":"Point","coordinates":[1E300,0]}', "out of range$"),
        ('{"type":"MultiPoint","coordinates":{}}', "are not an array"),
        ('{"type":"LineString","coordinates":[[0,0]]}', "fewer than 2"),
        ('{"type":"Polygon","coordinates":[[[0,0],[0,1],[0,0]]]}', "fewer than 4"),
        ('{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[1,0]]]}', "is not closed"),
        ('{"type":"Polygon","coordinates":[7]}', "are not an array"),
        ('{"type":"MultiPolygon","coordinates":[[[[0,0],[0,1],[1,1],[1,0]]]]}', "is not closed"),
    ],
)
def test_other_geometries_are_reported_with_their_reason(geometry: str, reason: str) -> None:
    found = violations_of(f'{{"id":"i","type":"t","a":{{"type":"geo:json","value":{geometry}}}}}')
    assert [(violation.rule, violation.severity) for violation in found] == [("geojson", "warning")]
    with pytest.raises(ValueError, match=reason):
        raise ValueError(found[0].message)


def test_two_places_are_one_too_many_unless_one_is_ignored() -> None:
    place = f'{{"type":"geo:json","value":{POINT}}}'
    ignored = f'{{"type":"geo:json","value":{POINT},"metadata":{{"ignoreType":{{"type":"Boolean","value":true}}}}}}'
    assert broken(f'{{"id":"i","type":"t","a":{place},"b":{place}}}') == [("geojson", "warning")]
    assert broken(f'{{"id":"i","type":"t","a":{place},"b":{ignored}}}') == []


@pytest.mark.parametrize(
    ("coordinates", "is_named"), [("[0,0]", True), ("[0.0,0,12]", True), ("[0,0.001]", False), ("[-3.7,40.4]", False)]
)
def test_a_point_without_a_position_is_named(coordinates: str, is_named: bool) -> None:
    place = f'{{"type":"geo:json","value":{{"type":"Point","coordinates":{coordinates}}},"metadata":{{}}}}'
    assert broken(f'{{"id":"i","type":"t","location":{place}}}') == [("null-island", "warning")] * is_named


@pytest.mark.parametrize("kind", ["geo:point", "geo:line", "geo:box", "geo:polygon"])
def test_older_forms_of_places_are_reported(kind: str) -> None:
    assert broken_by_attribute(f'{{"type":"{kind}","value":"41.3, 2.1"}}') == [("geo-legacy", "warning")]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Text", True), ("Boolean", True), ("DateTime", True), ("geo:json", True), ("None", False), ("custom", False)],
)
def test_null_is_reported_where_the_type_needs_a_value(kind: str, expected: bool) -> None:
    found = broken_by_attribute(f'{{"type":"{kind}","value":null}}')
    assert found == ([("null-value", "warning")] if expected else [])


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ('{"type":"Text","value":"a=b"}', True),
        ('{"type":"Text","value":"say \\"hi\\""}', True),
        ('{"type":"Text","value":"\\u003cb>"}', True),
        ('{"type":"StructuredValue","value":{"a":[{"b":"(c)"}]}}', True),
        ('{"type":"TextUnrestricted","value":"a=b"}', False),
        ('{"type":"Text","value":"a\\\\b\\n/&?#"}', False),
        ('{"type":"StructuredValue","value":{"a=b":1}}', False),
        ('{"type":"Text","value":"c","metadata":{"m":{"value":"a=b"}}}', False),
    ],
)
def test_characters_that_are_forbidden_in_values(attribute: str, expected: bool) -> None:
    assert broken_by_attribute(attribute) == ([("forbidden-char", "warning")] if expected else [])


@pytest.mark.parametrize(
    ("levels", "expected"), [(48, []), (49, [("nesting", "error")]), (150, [("nesting", "error")])]
)
def test_nesting_over_fifty_levels_is_refused(levels: int, expected: list[tuple[str, str]]) -> None:
    assert broken_by_attribute(f'{{"value":{"[" * levels}{"]" * levels}}}') == expected


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    assert broken_by_attribute(f'{{"value":[{",".join(["[]"] * 100)}]}}') == []


def test_a_body_larger_than_a_record_is_refused() -> None:
    body = '{"id":"i","type":"t"}'
    assert broken(body, EntityRuleOptions(maximum_bytes=len(body))) == []
    assert broken(body, EntityRuleOptions(maximum_bytes=len(body) - 1)) == [("size", "error")]


def test_a_service_path_that_a_user_attribute_hides_is_refused() -> None:
    assert broken('{"id":"i","type":"t","servicePath":{"type":"Text","value":"x"}}') == [("shadowed-builtin", "error")]


@pytest.mark.parametrize("name", ["dateCreated", "dateModified"])
@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-11-21T06:00:00.000Z", []),
        ("2026-11-21T06:01:00.000Z", []),
        ("2026-11-21T06:01:00.001Z", [("future-modified", "warning")]),
        ("2050-01-01T00:00:00.000Z", [("shadowed-builtin", "error")]),
    ],
)
def test_a_time_ahead_of_the_brokers_clock_is_reported(name: str, time: str, expected: list[tuple[str, str]]) -> None:
    assert broken(f'{{"id":"i","type":"t","{name}":{{"type":"DateTime","value":"{time}"}}}}') == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('"dateModified":{"type":"DateTime","value":"2026-11-21T04:59:59Z"}', [("stale", "warning")]),
        ('"dateModified":{"type":"DateTime","value":"2026-11-21T05:00:00Z"}', []),
        (
            '"dateModified":{"type":"DateTime","value":"2020-01-01T00:00:00Z"},'
            '"TimeInstant":{"type":"DateTime","value":"2026-11-21T05:30:00Z"}',
            [],
        ),
        ('"dateObserved":{"type":"Interval","value":"2020-01-01T00:00:00Z/2026-11-21T05:30:00Z"}', []),
        ('"observedAt":{"type":"Moment","value":"2020-01-01T00:00:00Z"}', [("stale", "warning")]),
        ('"speed":{"type":"Number","value":1}', []),
    ],
)
def test_an_entity_whose_newest_time_is_too_old_is_stale(attributes: str, expected: list[tuple[str, str]]) -> None:
    options = EntityRuleOptions(reference_time=NOW, stale_after_seconds=3600)
    assert broken(f'{{"id":"i","type":"t",{attributes}}}', options) == expected


def test_nothing_is_too_new_or_too_old_without_a_clock() -> None:
    body = '{"id":"i","type":"t","a":{"type":"DateTime","value":"2050-01-01T00:00:00Z"}}'
    assert broken(body, EntityRuleOptions(stale_after_seconds=1)) == []


def test_what_the_publication_declares_is_checked() -> None:
    options = EntityRuleOptions(
        severities=severities({"unknown-attr": "warning", "required-attr": "error"}),
        required_attributes=("speed", "plate"),
        attribute_types={"speed": "Number", "colour": "Text"},
        ranges={"speed": Bounds(0, 250), "colour": Bounds(0, 1), "absent": Bounds(0, 1)},
        entity_types=frozenset({"car"}),
    )
    body = (
        '{"id":"i","type":"bike","speed":{"type":"float","value":2.510E2},"colour":{"type":"Text","value":"red"},'
        '"wheels":{"type":"Number","value":2}}'
    )
    assert broken(body, options) == [
        ("unknown-type", "warning"),
        ("required-attr", "error"),
        ("attr-type", "warning"),
        ("unknown-attr", "warning"),
        ("range", "warning"),
    ]


@pytest.mark.parametrize(("value", "inside"), [("-0.1", False), ("0", True), ("250", True), ("250.1", False)])
def test_the_ends_of_a_range_belong_to_it(value: str, inside: bool) -> None:
    options = EntityRuleOptions(ranges={"a": Bounds(0, 250)})
    assert broken_by_attribute(f'{{"value":{value}}}', options) == ([] if inside else [("range", "warning")])


def test_an_open_range_has_one_end() -> None:
    options = EntityRuleOptions(ranges={"a": Bounds(minimum=0)})
    assert broken_by_attribute('{"value":1E300}', options) == []


def test_a_publication_may_change_severities_and_switch_rules_off() -> None:
    body = '{"id":"a b","type":"t","a":{"type":"Boolean","value":"yes"}}'
    assert broken(body) == [("id-syntax", "warning"), ("bool-string", "error")]
    options = EntityRuleOptions(severities=severities({"id-syntax": "error", "bool-string": "off"}))
    assert broken(body, options) == [("id-syntax", "error")]


def test_an_event_is_checked_at_the_time_it_was_received() -> None:
    body = b'{"id":"i","type":"t","dateModified":{"type":"DateTime","value":"2026-11-21T06:30:00Z"}}'
    parsed, options = parse_entity(body, service="s"), EntityRuleOptions()
    early = check_entity(parsed, options, received_at=NOW)
    assert [violation.rule for violation in early] == ["future-modified"]
    assert check_entity(parsed, options, received_at=NOW + timedelta(hours=1)) == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"[]", "body"),
        (b'{"id":"i","type":"t","a":{"value":NaN}}', "body"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nesting"),
    ],
)
def test_an_event_that_cannot_be_taken_apart_breaks_a_rule(body: bytes, rule: str) -> None:
    with pytest.raises(EntityError) as refused:
        parse_entity(body, service="s")
    found = unreadable(refused.value)
    assert [(violation.rule, violation.severity) for violation in found] == [(rule, "error")]


@pytest.mark.parametrize("setting", ["off", "warning"])
def test_what_cannot_be_read_is_never_let_through(setting: str) -> None:
    options = EntityRuleOptions(severities=severities({"nesting": setting}))  # type: ignore[dict-item]
    body = b'{"a":' * 300 + b"1" + b"}" * 300
    with pytest.raises(EntityError) as refused:
        parse_entity(body, service="s")
    found = unreadable(refused.value, options)
    assert [(violation.rule, violation.severity) for violation in found] == [("body", "error")]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**53), 2**53)
    | st.text(st.sampled_from("Zé\n<'\""), max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    ["Number", "Boolean", "DateTime", "Text", "geo:json", "geo:point", "Z" * 300, "\n" * 300, 7, None, "custom"]
)
ATTRIBUTES = JSON | st.fixed_dictionaries(
    {"type": KINDS, "value": JSON},
    optional={"metadata": JSON | st.dictionaries(st.text("Z\n", max_size=300), JSON, max_size=2)},
)


@pytest.mark.slow
@given(st.dictionaries(st.text("Z\n", max_size=300) | st.just("dateModified"), ATTRIBUTES, max_size=4), JSON, JSON)
def test_any_object_can_be_checked_and_messages_show_little_of_it(
    attributes: dict[str, object], entity_id: object, entity_type: object
) -> None:
    body = orjson.dumps({"id": entity_id, "type": entity_type, **attributes})
    options = EntityRuleOptions(
        attribute_types={"a": "Number"}, ranges={"a": Bounds(0, 1)}, entity_types=frozenset("a"), reference_time=NOW
    )
    for violation in violations_of(body, options):
        assert violation.message.count("Z") + violation.message.count("\\n") <= 120
        assert "\n" not in violation.message
        assert len(violation.message) <= 240


def test_real_entities_break_the_rules_they_are_known_to_break() -> None:
    files = sorted((samples_or_skip() / "ngsi").rglob("v2-normalized.json"))
    found = {
        file.parent.name: sorted({violation.rule for violation in violations_of(file.read_bytes())}) for file in files
    }
    assert found == {
        "BikeHireDockingStation": [],
        "Device": [],
        "MosquitoDensity": ["id-syntax"],
        "Streetlight": [],
        "TrafficFlowObserved": ["datetime"],
        "WeatherObserved": [],
    }
