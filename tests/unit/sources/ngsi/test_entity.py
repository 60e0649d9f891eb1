"""Taking an entity apart: identity, builtins, and the user's attributes as they were sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events import ContextIdentity
from contexture.sources.ngsi.entity import EntityError, parse_entity
from contexture.sources.ngsi.entity_head import read_entity_head
from tests.samples_location import samples_or_skip

CAR = (
    b'{"id":"car3","type":"car","speed":{"type":"Number","value":30,"metadata":{}},'
    b'"dateCreated":{"type":"DateTime","value":"2026-11-21T05:38:57.734Z","metadata":{}},'
    b'"dateModified":{"type":"DateTime","value":"2026-11-21T05:39:01.002Z","metadata":{}},'
    b'"servicePath":{"type":"Text","value":"/4wheels","metadata":{}}}'
)


def test_builtins_say_path_and_times_and_are_no_attributes() -> None:
    parsed = parse_entity(CAR, service="vehicles")
    assert parsed.identity == ContextIdentity("vehicles", "/4wheels", "car3", "car")
    assert parsed.created_at == datetime(2026, 11, 21, 5, 38, 57, 734000, tzinfo=UTC)
    assert parsed.modified_at == datetime(2026, 11, 21, 5, 39, 1, 2000, tzinfo=UTC)
    assert parsed.attributes == {"speed": {"type": "Number", "value": 30, "metadata": {}}}
    assert parsed.shadowed == ()
    assert orjson.dumps(parsed.entity) == (
        b'{"id":"car3","type":"car","speed":{"type":"Number","value":30,"metadata":{}}}'
    )


def test_order_and_number_literals_stay_as_sent() -> None:
    body = b'{"type":"t","id":"i","z":{"value":1.0},"a":{"value":1E5},"m":{"value":1234567890123456789012}}'
    parsed = parse_entity(body, service="s")
    assert orjson.dumps(parsed.entity) == body
    assert list(parsed.attributes) == ["z", "a", "m"]


@pytest.mark.parametrize(("hint", "path"), [(None, "/"), ("/suites", "/suites")])
def test_the_hint_says_the_path_where_the_body_does_not(hint: str | None, path: str) -> None:
    assert parse_entity(b'{"id":"i","type":"t"}', service="s", service_path_hint=hint).identity.service_path == path


def test_a_known_path_wins_over_an_attribute_of_that_name_which_stays_an_attribute() -> None:
    body = b'{"id":"i","type":"t","servicePath":{"type":"Text","value":"/liar"}}'
    parsed = parse_entity(body, service="s", service_path_hint="/a")
    assert parsed.identity.service_path == "/a"
    assert parsed.shadowed == ()
    assert parsed.attributes == {"servicePath": {"type": "Text", "value": "/liar"}}


def test_the_builtin_that_says_the_known_path_is_no_attribute() -> None:
    parsed = parse_entity(CAR, service="vehicles", service_path_hint="/4wheels")
    assert (parsed.identity.service_path, parsed.shadowed, list(parsed.attributes)) == ("/4wheels", (), ["speed"])


@pytest.mark.parametrize("known", [None, "/a"])
@pytest.mark.parametrize("attribute", ['"/liar"', '{"type":"Text","value":"/liar"}', '{"type":"Number","value":"/b"}'])
def test_an_entity_is_prepared_under_the_path_that_it_landed_with(known: str | None, attribute: str) -> None:
    body = f'{{"id":"i","type":"t","servicePath":{attribute}}}'.encode()
    landed = read_entity_head(body, known).path
    assert parse_entity(body, service="s", service_path_hint=landed).identity.service_path == (landed or "/")


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("dateModified", '{"type":"Text","value":"2026-11-21T05:38:57.734Z"}'),
        ("dateModified", '{"type":"DateTime","value":"soon"}'),
        ("dateModified", '{"type":"DateTime","value":7}'),
        ("dateCreated", '{"type":"Number","value":7}'),
        ("dateExpires", '{"type":"DateTime","value":null}'),
        ("servicePath", '{"type":"Text","value":"4wheels"}'),
        ("servicePath", '{"type":"Number","value":"/4wheels"}'),
        ("servicePath", '{"type":"Text","value":["/4wheels"]}'),
    ],
)
def test_a_user_attribute_that_hides_a_builtin_stays_an_attribute(name: str, attribute: str) -> None:
    parsed = parse_entity(f'{{"id":"i","type":"t","{name}":{attribute}}}'.encode(), service="s")
    # The identity needs a service path; without times an entity can be published.
    assert parsed.shadowed == (("servicePath",) if name == "servicePath" else ())
    assert parsed.attributes == {name: json.loads(attribute)}
    assert (parsed.created_at, parsed.modified_at, parsed.identity.service_path) == (None, None, "/")


def test_a_time_with_another_zone_is_the_same_moment_in_utc() -> None:
    body = b'{"id":"i","dateModified":{"type":"DateTime","value":"2021-03-11T15:51:02+05:30"}}'
    assert parse_entity(body, service="s").modified_at == datetime(2021, 3, 11, 10, 21, 2, tzinfo=UTC)


def test_the_broker_s_time_of_an_attribute_is_distinguished_from_the_users_metadata() -> None:
    time = '{"type":"DateTime","value":"2026-11-21T05:39:00.500Z"}'
    body = (
        '{"id":"i","type":"t",'
        f'"a":{{"type":"Number","value":1.0,"metadata":{{"unit":{{"type":"Text","value":"km"}},"dateModified":{time}}}}},'
        f'"b":{{"type":"Number","value":2,"metadata":{{"dateModified":{time}}}}},'
        '"c":{"type":"Number","value":3,"metadata":{"dateModified":{"type":"Text","value":"on Monday"}}},'
        '"d":{"type":"Number","value":4},"e":5}'
    ).encode()

    parsed = parse_entity(body, service="s", attribute_times=True)

    moment = datetime(2026, 11, 21, 5, 39, 0, 500000, tzinfo=UTC)
    assert parsed.attribute_times == {"a": moment, "b": moment}
    assert orjson.dumps(parsed.entity) == (
        b'{"id":"i","type":"t","a":{"type":"Number","value":1.0,"metadata":{"unit":{"type":"Text","value":"km"}}},'
        b'"b":{"type":"Number","value":2,"metadata":{}},'
        b'"c":{"type":"Number","value":3,"metadata":{"dateModified":{"type":"Text","value":"on Monday"}}},'
        b'"d":{"type":"Number","value":4},"e":5}'
    )
    assert parse_entity(body, service="s").attribute_times is None
    assert orjson.dumps(parse_entity(body, service="s").entity) == body


def test_the_key_values_form_of_a_key_only_walk_is_understood() -> None:
    parsed = parse_entity(b'{"id":"car1","type":"car","servicePath":"/4wheels"}', service="vehicles")
    assert (parsed.identity, parsed.attributes) == (ContextIdentity("vehicles", "/4wheels", "car1", "car"), {})


@pytest.mark.parametrize("body", [b'{"type":"t"}', b'{"id":null,"type":"t"}', b'{"id":7,"type":"t"}'])
def test_an_id_that_is_no_string_is_an_empty_one(body: bytes) -> None:
    assert parse_entity(body, service="s").identity == ContextIdentity("s", "/", "", "t")


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"7", "body"),
        (b'{"id":', "body"),
        (b'{"id":NaN}', "body"),
        (b'{"id":"\\ud800"}', "body"),
        (b'{"n":{"value":1E400},"id":"\\ud800"}', "body"),
        (b'{"id":"\xff"}', "body"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nesting"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "nesting"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_rule(body: bytes, rule: str) -> None:
    with pytest.raises(EntityError) as raised:
        parse_entity(body, service="s")
    assert raised.value.context["rule"] == rule


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])).filter(lambda name: name not in ("id", "type")),
        st.fixed_dictionaries({"value": st.integers() | st.text(st.characters(exclude_categories=["Cs"]))}),
    )
)
def test_the_users_attributes_come_through_unchanged(attributes: dict[str, object]) -> None:
    body = json.dumps({"id": "i", "type": "t", **attributes}).encode()
    parsed = parse_entity(body, service="s")
    assert json.loads(orjson.dumps(parsed.entity)) == json.loads(body)


def test_the_real_samples_can_be_read() -> None:
    files = sorted((samples_or_skip() / "ngsi").rglob("v2-normalized.json"))
    identities = [parse_entity(file.read_bytes(), service="s").identity for file in files]
    assert sorted(identity.type for identity in identities) == [
        "BikeHireDockingStation",
        "Device",
        "MosquitoDensity",
        "Streetlight",
        "TrafficFlowObserved",
        "WeatherObserved",
    ]


def test_what_the_recorded_broker_answered_can_be_read() -> None:
    recorded = (samples_or_skip() / "orion" / "exchanges.jsonl").read_text().splitlines()
    exchange = next(item for item in map(json.loads, recorded) if item["n"] == 18)
    car = parse_entity(json.dumps(exchange["response"]["body"][0]).encode(), service="vehicles")
    assert car.identity == ContextIdentity("vehicles", "/4wheels", "car1", "car")
    assert list(car.attributes) == ["location", "oil_level", "speed", "when"]
    assert car.shadowed == ()
    assert car.modified_at == datetime(2026, 11, 21, 5, 38, 57, 682000, tzinfo=UTC)
