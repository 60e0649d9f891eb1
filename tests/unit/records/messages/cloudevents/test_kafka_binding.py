"""The Kafka protocol binding, rule by rule; the names of tests begin with the number of the rule in the checklist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from builders.cloud_events import EVENT, body, event, headers, record, without
from contexture.errors import ConfigurationError
from contexture.records.cloudevents import CloudEventError, Mode, decode, encode, partition_key

BOTH: tuple[Mode, ...] = ("binary", "structured")
LEAST = {"ce_specversion": b"1.0", "ce_id": b"17", "ce_source": b"/cars", "ce_type": b"moved"}
STRUCTURED = [("content-type", b"application/cloudevents+json")]


def attribute_refused(headers: Any, value: bytes | None = b"{}") -> str:
    with pytest.raises(CloudEventError) as caught:
        decode(headers, None, value)
    return caught.value.attribute


def test_k01_the_user_chooses_the_key() -> None:
    assert encode(event(), mode="binary", key="car1").key == b"car1"
    assert encode(event(), mode="structured", key="car1").key == b"car1"


def test_k02_a_record_that_is_copied_keeps_its_key_whatever_its_partitionkey_says() -> None:
    first = encode(event(partitionkey="other"), mode="binary", key="K")

    copied = encode(decode(first.headers, first.key, first.value), mode="structured", key=first.key)

    assert copied.key == b"K"
    assert decode(copied.headers, copied.key, copied.value)["partitionkey"] == "other"


def test_k03_one_event_is_the_same_event_in_both_modes() -> None:
    sent_event = event(
        subject="car1", time="2026-03-01T08:00:00Z", datacontenttype="application/json", data={"speed": [1, None]}
    )

    for mode in BOTH:
        sent = encode(sent_event, mode=mode)
        assert decode(sent.headers, sent.key, sent.value) == sent_event


@pytest.mark.parametrize(
    ("media_type", "data", "decoded"),
    [
        ("application/json", b'{"speed":1.0}', {"data": {"speed": 1.0}}),
        ("text/plain", "grün".encode(), {"data": "grün"}),
        ("application/xml; charset=iso-8859-1", b"<a>\xe9</a>", {"data": "<a>é</a>"}),
        ("application/json", b"not JSON", {"data_base64": "bm90IEpTT04="}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("avro/binary", b"\x00\x01", {"data_base64": "AAE="}),
    ],
)
def test_k03_bytes_are_the_same_data_in_both_modes(media_type: str, data: bytes, decoded: Mapping[str, object]) -> None:
    sent_event = event(datacontenttype=media_type, data=data)

    for mode in BOTH:
        sent = encode(sent_event, mode=mode)
        assert decode(sent.headers, None, sent.value) == {**EVENT, "datacontenttype": media_type, **decoded}


def test_k04_the_bytes_of_data_are_the_value_unchanged() -> None:
    every_byte = bytes(range(256))

    assert record("binary", data=every_byte, datacontenttype="application/avro").value == every_byte
    assert record("binary", data_base64="AP9/", datacontenttype="image/png").value == b"\x00\xff\x7f"
    assert record("binary", data=b'{ "a" : 1.0E2 }', datacontenttype="application/json").value == b'{ "a" : 1.0E2 }'


def test_k05_the_media_type_and_every_other_attribute_are_headers_and_nothing_else_is() -> None:
    found = headers(subject="car1", time="2026-03-01T08:00:00Z", datacontenttype="text/plain", data="x", myext="y")

    assert found == {
        **LEAST,
        "ce_subject": b"car1",
        "ce_time": b"2026-03-01T08:00:00Z",
        "content-type": b"text/plain",
        "ce_myext": b"y",
    }


def test_k06_there_are_no_batches() -> None:
    with pytest.raises(ConfigurationError, match="no content mode 'batch'"):
        encode(event(), mode="batch")  # type: ignore[arg-type]
    assert attribute_refused({"content-type": b"application/cloudevents-batch+json"}, b"[]") == "content-type"


def test_k07_structured_records_need_no_headers_to_hold_their_event() -> None:
    assert decode(STRUCTURED, None, record("structured", data={"a": 1}).value) == event(data={"a": 1})


def test_k08_structured_mode_writes_the_json_event_format() -> None:
    assert body(datacontenttype="application/json", data={"a": 1}, myext=True) == {
        "specversion": "1.0",
        "id": "17",
        "source": "/cars",
        "type": "moved",
        "datacontenttype": "application/json",
        "myext": True,
        "data": {"a": 1},
    }


@pytest.mark.parametrize(
    ("media_type", "value"),
    [
        ("text/plain; charset=iso-8859-1", b"\xe9"),
        ('text/plain;charset="ISO-8859-1"', b"\xe9"),
        ("text/plain", b"\xc3\xa9"),
        ("application/json; charset=iso-8859-1", b'"\xe9"'),
        ("application/json", b'"\xc3\xa9"'),
    ],
)
def test_k09_data_have_the_charset_that_their_media_type_names(media_type: str, value: bytes) -> None:
    sent = record("binary", datacontenttype=media_type, data="é")

    assert sent.value == value
    assert decode(sent.headers, None, sent.value)["data"] == "é"


@pytest.mark.parametrize(
    ("media_type", "data", "attribute"),
    [
        ("text/plain; charset=iso-8859-1", "€", "data"),
        ("text/plain; charset=x-unheard-of", "e", "datacontenttype"),
        ("text/plain; charset=base64", "e", "datacontenttype"),
        ("text/plain; charset=unicode_escape", "e", "datacontenttype"),
    ],
)
def test_k09_what_the_charset_has_not_is_refused(media_type: str, data: str, attribute: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        record("binary", datacontenttype=media_type, data=data)
    assert caught.value.attribute == attribute


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/cloudevents+json",
        b"application/cloudevents+json; charset=UTF-8",
        b"application/cloudevents+json;charset=utf8",
        b"Application/CloudEvents+JSON; Charset=UTF-8",
    ],
)
def test_k10_the_content_type_alone_says_structured(content_type: bytes) -> None:
    repeated = [("ce_id", b"other"), ("ce_id", b"twice"), ("content-type", content_type)]

    assert decode(repeated, None, orjson.dumps(EVENT)) == EVENT


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/cloudevent"])
def test_k10_everything_else_is_binary(media_type: str | None) -> None:
    named = LEAST if media_type is None else {**LEAST, "content-type": media_type.encode()}

    assert decode(named, None, None)["id"] == "17"


def test_k10_a_structured_event_may_have_another_charset() -> None:
    named = {"content-type": b"application/cloudevents+json; charset=utf-16"}

    assert decode(named, None, orjson.dumps(event(subject="é")).decode().encode("utf-16"))["subject"] == "é"
    assert attribute_refused({"content-type": b"application/cloudevents+json; charset=wrong"}) == "value"


@pytest.mark.parametrize("content_type", [b"application/cloudevents+avro", b"application/cloudevents"])
def test_k11_an_event_format_that_is_not_read_is_refused_without_a_look_at_the_value(content_type: bytes) -> None:
    with pytest.raises(CloudEventError, match="forward the record as it is"):
        decode({**LEAST, "content-type": content_type}, None, orjson.dumps(EVENT))


@pytest.mark.parametrize("name", ["specversion", "id", "source", "type"])
def test_k12_a_record_that_lacks_a_required_header_is_no_event_and_gets_no_invented_one(name: str) -> None:
    assert attribute_refused({label: value for label, value in LEAST.items() if label != f"ce_{name}"}) == name
    assert attribute_refused({**LEAST, f"ce_{name}": None}) == name
    assert attribute_refused({**LEAST, f"ce_{name}": b""}) == name


def test_k12_a_record_without_headers_is_no_event() -> None:
    assert attribute_refused(None) == "specversion"
    assert attribute_refused([]) == "specversion"


@pytest.mark.parametrize(
    ("key", "sent"),
    [(None, None), ("", b""), ("car1", b"car1"), ("Zürich", "Zürich".encode()), (b"\xff\x00", b"\xff\x00")],
)
def test_k13_the_users_key_is_the_records_key(key: str | bytes | None, sent: bytes | None) -> None:
    for mode in BOTH:
        assert encode(event(partitionkey="p"), mode=mode, key=key).key == sent


@pytest.mark.parametrize("key", [5, "\ud800"])
def test_k13_what_no_key_can_be_is_refused(key: Any) -> None:
    with pytest.raises(CloudEventError) as caught:
        encode(event(), mode="binary", key=key)
    assert caught.value.attribute == "key"


def test_k14_a_mapper_may_take_the_key_from_anywhere() -> None:
    sent_event = event(data={"car": {"plate": "X1"}})

    assert encode(sent_event, mode="binary", key_mapper=lambda given: given["data"]["car"]["plate"]).key == b"X1"  # type: ignore[index]
    assert encode(sent_event, mode="binary", key="own", key_mapper=lambda _: None).key == b"own"
    assert encode(sent_event, mode="binary", key="own", key_mapper=lambda _: b"\x01").key == b"\x01"


@pytest.mark.parametrize("mode", BOTH)
def test_k15_partitionkey_is_the_key_only_where_it_is_asked_for(mode: Mode) -> None:
    keyed = event(partitionkey="street 5")

    assert encode(keyed, mode=mode).key is None
    assert encode(keyed, mode=mode, key_mapper=partition_key).key == b"street 5"
    assert encode(keyed, mode=mode, key="own", key_mapper=partition_key).key == b"street 5"
    assert encode(event(), mode=mode, key="own", key_mapper=partition_key).key == b"own"
    assert encode(event(), mode=mode, key_mapper=partition_key).key is None


def test_k16_partitionkey_travels_with_the_event_and_no_mapper_can_change_it() -> None:
    def meddling(given: Any) -> str:
        given["id"] = "another"
        return "key"

    keyed = event(partitionkey="p")

    assert dict(encode(keyed, mode="binary", key_mapper=partition_key).headers)["ce_partitionkey"] == b"p"
    assert orjson.loads(encode(keyed, mode="structured", key_mapper=partition_key).value or b"")["partitionkey"] == "p"
    with pytest.raises(TypeError):
        encode(keyed, mode="binary", key_mapper=meddling)
    assert keyed == event(partitionkey="p")


def test_k16_a_records_key_is_no_part_of_the_event_that_is_read() -> None:
    assert decode({**LEAST, "ce_partitionkey": b"p"}, b"\xff other", None)["partitionkey"] == "p"


def test_k17_a_key_from_outside_adds_no_attribute() -> None:
    assert encode(event(), mode="binary", key="car1").headers == encode(event(), mode="binary").headers
    assert encode(event(), mode="structured", key="car1").value == encode(event(), mode="structured").value


@pytest.mark.parametrize("media_type", ['Text/Plain; format="a \\"b\\"; c"', "application/json ; charset=UTF-8"])
def test_k18_the_media_type_is_in_content_type_as_it_was_given(media_type: str) -> None:
    found = headers(datacontenttype=media_type, data="x")

    assert found["content-type"] == media_type.encode()
    assert "ce_datacontenttype" not in found


def test_k18_a_media_type_that_readers_would_take_for_structured_mode_is_refused() -> None:
    with pytest.raises(CloudEventError, match="structured"):
        record("binary", datacontenttype="Application/CloudEvents+JSON", data={})
    assert body(datacontenttype="application/cloudevents+json", data={})["data"] == {}


@pytest.mark.parametrize("data", [b"", b"\x00", b"null"])
def test_k19_the_value_is_the_bytes_of_the_data(data: bytes) -> None:
    assert record("binary", data=data, datacontenttype="application/octet-stream").value == data


def test_k20_an_event_without_data_is_a_tombstone_in_binary_mode() -> None:
    sent = record("binary")

    assert sent.value is None
    assert decode(sent.headers, sent.key, sent.value) == EVENT
    # Empty bytes are data, and delete nothing.
    assert record("binary", data="", datacontenttype="text/plain").value == b""


def test_k21_every_attribute_and_extension_is_a_header_of_its_own_both_ways() -> None:
    sent_event = event(
        datacontenttype="application/json",
        dataschema="https://example.org/schema",
        subject="car1",
        time="2026-03-01T08:00:00+01:00",
        extbool=False,
        extint=0,
        extstring="s",
        extbytes=b"\x00\xff",
        exturi="https://example.org/",
    )

    found = headers(**sent_event)

    assert len(found) == 13
    assert (found["ce_extbool"], found["ce_extint"], found["ce_extbytes"]) == (b"false", b"0", b"AP8=")
    assert decode(found, None, None) == {**sent_event, "extbool": "false", "extint": "0", "extbytes": "AP8="}


def test_k22_headers_are_utf_8_and_not_percent_encoded() -> None:
    assert headers(subject="Euro € 😀 50%")["ce_subject"] == b"Euro \xe2\x82\xac \xf0\x9f\x98\x80 50%"
    assert attribute_refused({**LEAST, "ce_subject": b"\xff"}) == "subject"


def test_k23_attributes_have_lower_case_names_with_a_prefix() -> None:
    assert set(headers()) == {"ce_specversion", "ce_id", "ce_source", "ce_type"}


def test_k23_names_are_read_in_any_case() -> None:
    shouted = {label.upper(): value for label, value in LEAST.items()}

    assert decode({**shouted, "Content-Type": b"text/plain"}, None, b"x") == event(
        datacontenttype="text/plain", data="x"
    )


def test_k23_names_and_values_may_be_text_or_bytes() -> None:
    sent_event = [(label.encode(), value.decode()) for label, value in LEAST.items()]

    assert decode(sent_event, None, None) == EVENT
    assert attribute_refused([*sent_event, (b"ce_\xff", "x")]) == "\ufffd"


@pytest.mark.parametrize("label", ["ce_datacontenttype", "contentType"])
def test_k23_the_media_type_is_read_where_others_put_it(label: str) -> None:
    assert decode({**LEAST, label: b"text/plain"}, None, b"x") == event(datacontenttype="text/plain", data="x")


def test_k23_two_media_types_are_one_only_where_they_are_equal() -> None:
    both = {**LEAST, "content-type": b"text/plain", "ce_datacontenttype": b"text/plain"}

    assert decode(both, None, b"x")["data"] == "x"
    assert attribute_refused({**both, "ce_datacontenttype": b"text/html"}) == "datacontenttype"


def test_k24_a_structured_record_says_so_in_its_content_type() -> None:
    assert record("structured", datacontenttype="text/plain", data="x").headers == STRUCTURED


def test_k25_a_structured_value_has_attributes_as_members() -> None:
    assert body(subject="car1") == event(subject="car1")


def test_k26_a_structured_event_without_data_has_a_value() -> None:
    sent = record("structured")

    assert sent.value is not None
    assert orjson.loads(sent.value) == EVENT
    assert decode(sent.headers, sent.key, sent.value) == EVENT
    assert attribute_refused(STRUCTURED, None) == "value"


def test_k27_a_structured_record_repeats_no_attribute_in_headers() -> None:
    assert [name for name, _ in record("structured", subject="car1").headers] == ["content-type"]


def test_an_event_is_a_mapping() -> None:
    with pytest.raises(CloudEventError, match="'event' is a list"):
        encode([], mode="binary")  # type: ignore[arg-type]


def test_what_is_missing_is_named_with_what_to_do() -> None:
    with pytest.raises(CloudEventError, match=r"'id' is missing.*Next: ") as caught:
        encode(without("id"), mode="binary")
    assert (caught.value.attribute, caught.value.intent) == ("id", "data rejected")


def test_the_order_of_headers_is_that_of_the_event() -> None:
    assert record("binary", subject="s", datacontenttype="text/plain", zoo="z", data="x").headers == [
        *LEAST.items(),
        ("ce_subject", b"s"),
        ("content-type", b"text/plain"),
        ("ce_zoo", b"z"),
    ]
