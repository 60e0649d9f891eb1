"""From a broker's request to events: every header rule, every form, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events import ContextIdentity, Event, content_hash
from contexture.sources.ngsi.notifications.notification import NotificationError
from contexture.sources.ngsi.notifications.parsing import parse_notification, read_notification

RECORDED = Path(__file__).parents[4] / "samples" / "orion" / "notifications.json"
MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
JSON = "application/json; charset=utf-8"
CAR = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 1, "metadata": {}}}
V1 = (
    b'{"subscriptionId":"5","originator":"localhost","contextResponses":[{"contextElement":{"attributes":'
    b'[{"name":"speed","type":"float","value":"112.9","metadatas":[]},'
    b'{"name":"oil_level","type":"float","value":"74.6"}],'
    b'"type":"car","isPattern":"false","id":"car1"},"statusCode":{"code":"200","reasonPhrase":"OK"}}]}'
)


def notified(*entities: dict[str, object], **headers: str) -> list[Event]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given_headers = {"Content-Type": JSON, "Ngsiv2-AttrsFormat": "normalized", **named}
    return parse_notification(given_headers, body_of(*entities), received_at=MORNING)


def body_of(*entities: dict[str, object]) -> bytes:
    return orjson.dumps({"subscriptionId": "6b01", "data": list(entities)})


def refusal(headers: dict[str, str], body: bytes = body_of(CAR), **options: int) -> tuple[int, str]:
    with pytest.raises(NotificationError) as caught:
        parse_notification(headers, body, **options)
    assert caught.value.next_step
    return caught.value.status, caught.value.message


@pytest.mark.parametrize(
    ("number", "car", "value"),
    [
        (0, "car1", None),
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
def test_every_recorded_notification_is_one_event(number: int, car: str, value: int | None) -> None:
    recorded = orjson.loads(RECORDED.read_bytes())[number]
    (event,) = parse_notification(recorded["headers"], orjson.dumps(recorded["body"]), received_at=MORNING)

    assert event.operation == "upsert"
    assert event.identity == ContextIdentity("vehicles", "/4wheels", car, "car")
    assert event.received_at == MORNING
    entity = recorded["body"]["data"][0]
    assert orjson.loads(event.body or b"") == entity
    assert event.content_hash == content_hash(entity)
    assert value is None or entity["speed"]["value"] == value


def test_the_first_recorded_notification_keeps_its_bytes() -> None:
    recorded = orjson.loads(RECORDED.read_bytes())[0]
    (event,) = parse_notification(recorded["headers"], orjson.dumps(recorded["body"]))

    assert event.body == (
        b'{"id":"car1","type":"car","speed":{"type":"float","value":112.9,"metadata":{"accuracy":{"type":"Number",'
        b'"value":2}}},"oil_level":{"type":"float","value":74.6,"metadata":{}},"when":{"type":"DateTime","value":'
        b'"2026-01-02T03:04:05.000Z","metadata":{}},"location":{"type":"geo:json","value":{"type":"Point",'
        b'"coordinates":[2.1,41.3]},"metadata":{}}}'
    )


def test_a_service_and_path_that_are_not_sent_have_cygnus_defaults() -> None:
    (event,) = notified(CAR)
    assert event.identity == ContextIdentity("default", "/", "car1", "car")


def test_the_defaults_can_be_others() -> None:
    (event,) = parse_notification({}, body_of(CAR), default_service="city", default_service_path="/a")
    assert event.identity == ContextIdentity("city", "/a", "car1", "car")


@pytest.mark.parametrize("service", ["", "with space", 'q"uote', "UPPER", "x" * 50])
def test_a_service_of_fifty_characters_passes_as_it_is(service: str) -> None:
    (event,) = notified(CAR, Fiware_Service=service)
    assert isinstance(event.identity, ContextIdentity)
    assert event.identity.service == service


def test_a_service_of_fifty_one_characters_is_refused() -> None:
    status, message = refusal({"Fiware-Service": "x" * 51})
    assert (status, message) == (400, "Fiware-Service has 51 characters, more than 50")


@pytest.mark.parametrize(
    ("header", "paths"),
    [
        ("/", ["/", "/"]),
        ("/a", ["/a", "/a"]),
        ("/a,/b", ["/a", "/b"]),
        ("/a, /b", ["/a", "/b"]),
        ("/b,/a,,", ["/b", "/a"]),
        ("/a/", ["/a", "/a"]),
        ("/" + "/".join(["x" * 50] * 10), ["/" + "/".join(["x" * 50] * 10)] * 2),
    ],
)
def test_paths_are_positional_or_replicated(header: str, paths: list[str]) -> None:
    events = notified(CAR, {**CAR, "id": "car2"}, Fiware_ServicePath=header)
    assert [event.identity.service_path for event in events if isinstance(event.identity, ContextIdentity)] == paths


def test_paths_go_by_position_not_by_name() -> None:
    suite, other = ({"id": name, "type": "t"} for name in ("suite.12", "other.9"))
    events = notified(suite, other, Fiware_ServicePath="/other,/suites")
    found = {event.identity.id: event.identity.service_path for event in events}  # type: ignore[union-attr]
    assert found == {"suite.12": "/other", "other.9": "/suites"}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("/a,/b,/c", "Fiware-ServicePath has 3 paths for 2 entities"),
        ("a", "the service path 'a' does not start with /"),
        ("/a,b", "the service path 'b' does not start with /"),
        ("", "Fiware-ServicePath is empty"),
        ("/a,,/b", "the service path '' does not start with /"),
        ("/a//b", "the service path '/a//b' has a level of 0 characters"),
        ("/#", "'/#' is not a service path of an entity"),
        ("/1/2/3/4/5/6/7/8/9/10/11", "a service path has 11 levels"),
    ],
)
def test_paths_that_can_not_be_are_refused(header: str, message: str) -> None:
    two = body_of(CAR, {**CAR, "id": "car2"})
    assert refusal({"Fiware-ServicePath": header}, two) == (400, message)


def test_a_level_of_fifty_one_characters_is_refused() -> None:
    assert refusal({"Fiware-ServicePath": "/" + "x" * 51})[0] == 400


@pytest.mark.parametrize("form", ["normalized", "Normalized", "x-ngsiv2-normalized", "simplifiedNormalized"])
def test_normalized_forms_are_understood(form: str) -> None:
    assert len(notified(CAR, Ngsiv2_AttrsFormat=form)) == 1


def test_a_simplified_notification_has_no_wrapper() -> None:
    (event,) = parse_notification({"Ngsiv2-AttrsFormat": "simplifiedNormalized"}, orjson.dumps(CAR))
    assert event.identity == ContextIdentity("default", "/", "car1", "car")
    assert event.body == orjson.dumps(CAR)


@pytest.mark.parametrize("form", ["keyValues", "simplifiedKeyValues", "values", "KEYVALUES"])
def test_forms_without_types_are_refused_with_the_way_out(form: str) -> None:
    with pytest.raises(NotificationError, match="has no types and no metadata") as caught:
        notified(CAR, Ngsiv2_AttrsFormat=form)
    assert caught.value.status == 400
    assert "attrsFormat of the subscription to normalized" in caught.value.next_step


def test_an_unknown_form_is_refused() -> None:
    assert refusal({"Ngsiv2-AttrsFormat": "mine"})[0] == 400


@pytest.mark.parametrize("content_type", [JSON, "application/json", "Application/JSON;charset=UTF-8", "a/b"])
def test_json_in_utf_8_is_taken_however_it_is_spelt(content_type: str) -> None:
    if content_type == "a/b":
        assert refusal({"Content-Type": content_type}) == (415, "Content-Type 'a/b' is not JSON")
    else:
        assert len(notified(CAR, Content_Type=content_type)) == 1


def test_a_missing_content_type_is_left_to_the_body() -> None:
    assert len(parse_notification({}, body_of(CAR))) == 1


def test_another_charset_is_refused() -> None:
    refused = refusal({"Content-Type": "application/json; charset=latin-1"})
    assert refused == (415, "the charset 'latin-1' is not UTF-8")


def test_header_names_are_in_any_case() -> None:
    headers = {"FIWARE-SERVICE": "s", "fiware-servicepath": "/p", "FiWare-Correlator": "abc; cbnotif=7"}
    notification = read_notification(headers, body_of(CAR))
    assert (notification.service, notification.correlator) == ("s", "abc; cbnotif=7")
    assert notification.entities[0].service_path == "/p"


def test_a_correlator_is_kept_as_it_came_and_none_is_made_up() -> None:
    assert read_notification({}, body_of(CAR)).correlator is None


def test_types_and_metadata_may_be_missing() -> None:
    entity = {"id": "car1", "speed": {"value": 3}}
    (event,) = parse_notification({}, orjson.dumps({"data": [entity]}))
    assert event.identity == ContextIdentity("default", "/", "car1", "")
    assert event.body == b'{"id":"car1","speed":{"value":3}}'


def test_legacy_notifications_are_returned_in_the_normalized_form() -> None:
    (event,) = parse_notification({"Fiware-Service": "vehicles", "Ngsiv2-AttrsFormat": "legacy"}, V1)
    assert event.identity == ContextIdentity("vehicles", "/", "car1", "car")
    assert event.body == (
        b'{"id":"car1","type":"car","speed":{"type":"float","value":"112.9","metadata":{}},'
        b'"oil_level":{"type":"float","value":"74.6"}}'
    )


def test_legacy_entities_are_kept_as_received_with_is_pattern() -> None:
    notification = read_notification({}, V1)
    assert notification.form == "ngsiv1"
    assert notification.entities[0].body == (
        b'{"attributes":[{"name":"speed","type":"float","value":"112.9","metadatas":[]},'
        b'{"name":"oil_level","type":"float","value":"74.6"}],"type":"car","isPattern":"false","id":"car1"}'
    )


@pytest.mark.parametrize(
    "element",
    [
        b'{"id":"a","attributes":{}}',
        b'{"id":"a","attributes":[{"value":1}]}',
        b'{"id":"a","attributes":[{"name":"x"},{"name":"x"}]}',
        b'{"id":"a","attributes":[{"name":"x","metadatas":{}}]}',
        b'{"id":"a","attributes":[{"name":"x","metadatas":[{"name":"m"},{"name":"m"}]}]}',
        b"1",
    ],
)
def test_legacy_bodies_that_lose_something_are_refused(element: bytes) -> None:
    assert refusal({}, b'{"contextResponses":[{"contextElement":%b}]}' % element)[0] == 400


def test_header_and_body_must_say_the_same_form() -> None:
    assert refusal({"Ngsiv2-AttrsFormat": "normalized"}, V1)[0] == 400
    assert refusal({"Ngsiv2-AttrsFormat": "legacy"})[0] == 400


def test_linked_data_notifications_are_understood() -> None:
    body = {
        "id": "urn:ngsi-ld:Notification:1",
        "type": "Notification",
        "subscriptionId": "urn:ngsi-ld:Subscription:1",
        "notifiedAt": "2026-01-02T03:04:05Z",
        "data": [{"id": "urn:ngsi-ld:Car:1", "type": "Car", "speed": {"type": "Property", "value": 3}}],
    }
    headers = {
        "NGSILD-Tenant": "city",
        "Link": '<https://a.example/c.jsonld>; rel="http://www.w3.org/ns/json-ld#context"',
    }
    notification = read_notification(headers, orjson.dumps(body))
    (event,) = parse_notification(headers, orjson.dumps(body))

    assert (notification.form, notification.subscription) == ("ngsi-ld", "urn:ngsi-ld:Subscription:1")
    assert event.identity == ContextIdentity("city", "/", "urn:ngsi-ld:Car:1", "Car")
    assert event.body == (
        b'{"id":"urn:ngsi-ld:Car:1","type":"Car","speed":{"type":"Property","value":3},'
        b'"@context":"https://a.example/c.jsonld"}'
    )


def test_a_context_in_the_notification_goes_with_its_entities() -> None:
    body = {"type": "Notification", "@context": ["https://a.example"], "data": [{"id": "urn:a", "type": "B"}]}
    (event,) = parse_notification({"Content-Type": "application/ld+json"}, orjson.dumps(body))
    assert orjson.loads(event.body or b"")["@context"] == ["https://a.example"]


def test_two_indistinguishable_instances_are_refused() -> None:
    entity = {"id": "urn:a", "type": "B", "c": [{"type": "Property", "value": 1}, {"type": "Property", "value": 2}]}
    body = orjson.dumps({"type": "Notification", "data": [entity]})
    assert refusal({}, body) == (400, "two instances of 'c' have the name 'c'")


def test_a_linked_data_entity_that_was_deleted_is_a_delete() -> None:
    entity = {"id": "urn:a", "type": "B", "deletedAt": "2026-01-02T03:04:05Z"}
    (event,) = parse_notification({}, orjson.dumps({"type": "Notification", "data": [entity]}))
    assert (event.operation, event.body, event.content_hash) == ("delete", None, b"")
    assert event.identity == ContextIdentity("default", "/", "urn:a", "B")


def test_alteration_entity_delete_is_a_delete() -> None:
    (event,) = notified({**CAR, "alterationType": {"type": "Text", "value": "entityDelete", "metadata": {}}})
    assert (event.operation, event.body) == ("delete", None)
    assert event.identity == ContextIdentity("default", "/", "car1", "car")


@pytest.mark.parametrize("alteration", ["entityCreate", "entityUpdate", "entityChange"])
def test_other_alterations_leave_no_trace_in_the_body(alteration: str) -> None:
    (event,) = notified({**CAR, "alterationType": {"type": "Text", "value": alteration, "metadata": {}}})
    assert (event.operation, event.body) == ("upsert", orjson.dumps(CAR))


def test_a_users_own_attribute_of_that_name_stays() -> None:
    (event,) = notified({**CAR, "alterationType": {"type": "Text", "value": "widened", "metadata": {}}})
    assert b"widened" in (event.body or b"")


@pytest.mark.parametrize("literal", [b"1.0", b"1E5", b"0.10", b"12345678901234567890123", b"-0", b"1.50e-3"])
def test_number_literals_are_kept(literal: bytes) -> None:
    body = b'{"data":[{"id":"a","type":"b","n":{"type":"Number","value":%b,"metadata":{}}}]}' % literal
    (event,) = parse_notification({}, body)
    assert event.body == b'{"id":"a","type":"b","n":{"type":"Number","value":%b,"metadata":{}}}' % literal


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b" \n", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'"text"', 400),
        (b'{"data":[]}', 400),
        (b'{"data":{}}', 400),
        (b'{"data":[1]}', 400),
        (b'{"contextResponses":[]}', 400),
        (b'{"contextResponses":[{}]}', 400),
        (b'{"subscriptionId":"1"}', 400),
        (b'{"data":[{"id":"a","n":{"value":NaN}}]}', 400),
        (b'{"data":[{"id":"a","id":"b"}]}', 400),
        (b'{"data": [{"id":"a","n":{"value":1,"value":2}}]}', 400),
        (b'{"data":[{"id":"\xff"}]}', 400),
        ('{"data":[{"id":"a"}]}'.encode("utf-16"), 400),
        (b'{"data":[{"id":"a","n":{"value":' + b"[" * 200 + b"]" * 200 + b"}}]}", 400),
        (b'{"data":[{"id":"a","n":{"value":' + b"[" * 5000 + b"]" * 5000 + b"}}]}", 400),
    ],
)
def test_bodies_that_mean_nothing_or_two_things_are_refused(body: bytes, status: int) -> None:
    assert refusal({}, body)[0] == status


def test_nesting_up_to_the_limit_is_taken() -> None:
    body = b'{"data":[{"id":"a","n":{"value":' + b"[" * 90 + b"]" * 90 + b"}}]}"
    assert len(parse_notification({}, body)) == 1


def test_a_body_above_the_limit_is_refused_before_it_is_read() -> None:
    assert refusal({}, b"[" * 1001, maximum_bytes=1000) == (413, "the body has 1001 bytes, more than 1000")


@given(st.binary(max_size=200), st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=3))
def test_whatever_is_sent_is_an_event_or_an_answer(body: bytes, headers: dict[str, str]) -> None:
    try:
        answer = 200 if parse_notification(headers, body) else 0
    except NotificationError as error:
        answer = error.status
    assert answer in {200, 400, 413, 415}
