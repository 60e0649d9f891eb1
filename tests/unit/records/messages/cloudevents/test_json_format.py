"""The JSON event format, rule by rule; test names begin with the number in the checklist."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson
import pytest

from builders.cloud_events import EVENT, body, event, headers, record
from contexture.records.cloudevents import CloudEventError, decode

STRUCTURED = {"content-type": b"application/cloudevents+json"}
JSON_TYPES = [
    "application/json",
    "Application/JSON",
    "application/json ; charset=utf-8",
    "text/json",
    "application/ld+json",
    "model/gltf+json",
    "application/vnd.sdmx.structure+json;version=2.0.0",
]


def read(members: dict[str, Any]) -> dict[str, object]:
    return decode(STRUCTURED, None, orjson.dumps(members))


def refused(**changes: Any) -> set[str]:
    found = set()
    for mode in ("binary", "structured"):
        with pytest.raises(CloudEventError) as caught:
            record(mode, **changes)  # type: ignore[arg-type]
        found.add(caught.value.attribute)
    return found


def test_j01_extensions_are_members_beside_the_others() -> None:
    assert body(myext="x", data=1) == event(myext="x", data=1)


def test_j02_truth_values_and_integers_are_written_and_read_as_such() -> None:
    sent_event = event(extint=42, extbool=False, exttext="42")

    assert body(extint=42, extbool=False, exttext="42") == sent_event
    assert read(sent_event) == sent_event


def test_j03_null_means_that_an_attribute_is_not_set() -> None:
    assert read(event(subject=None, time=None, myext=None)) == EVENT


def test_j04_bytes_go_to_data_base64() -> None:
    assert body(data=b"\x00\xff", datacontenttype="image/png") == event(datacontenttype="image/png", data_base64="AP8=")
    assert body(data_base64="AP8=", datacontenttype="image/png")["data_base64"] == "AP8="
    assert body(data_base64="e30=", datacontenttype="application/json")["data_base64"] == "e30="


def test_j04_both_members_are_one_too_many() -> None:
    assert refused(data=1, data_base64="AA==") == {"data_base64"}
    with pytest.raises(CloudEventError):
        read(event(data=None, data_base64="AA=="))


@pytest.mark.parametrize("encoded", ["A", "AA=", "A A=", "AA==\n", "_-8=", "ä", 5, None, ["AA=="]])
def test_j04_what_is_no_base64_is_refused(encoded: object) -> None:
    assert refused(data_base64=encoded) == {"data_base64"}


@pytest.mark.parametrize("encoded", ["A", "AA==\n", "_-8=", 5])
def test_j04_what_is_no_base64_is_not_read_as_nothing(encoded: object) -> None:
    with pytest.raises(CloudEventError) as caught:
        read(event(data_base64=encoded))
    assert caught.value.attribute == "data_base64"


def test_j05_bytes_without_a_media_type_get_none() -> None:
    assert body(data=b"{}") == event(data_base64="e30=")
    sent = record("binary", data=b"{}")
    assert "content-type" not in dict(sent.headers)
    assert decode(sent.headers, None, sent.value) == event(data_base64="e30=")


@pytest.mark.parametrize("media_type", JSON_TYPES)
@pytest.mark.parametrize("data", [{"a": [1, None, True]}, ["a"], "text", 5, 1.5, True, None])
def test_j06_json_is_data_and_not_a_text_of_json(media_type: str, data: object) -> None:
    assert body(datacontenttype=media_type, data=data)["data"] == data
    sent = record("binary", datacontenttype=media_type, data=data)
    assert orjson.loads(sent.value or b"") == data
    assert decode(sent.headers, None, sent.value)["data"] == data


@pytest.mark.parametrize("media_type", JSON_TYPES)
def test_j06_the_json_in_bytes_is_data_with_its_literals(media_type: str) -> None:
    value = record("structured", datacontenttype=media_type, data=b'{"a":1.0E2,"b":12345678901234567890123}').value

    assert value is not None
    assert value.endswith(b',"data":{"a":1.0E2,"b":12345678901234567890123}}')
    assert decode(STRUCTURED, None, value)["data"] == {"a": 100.0, "b": 12345678901234567890123}


@pytest.mark.parametrize("media_type", ["application/xml", "text/plain", "image/png", "application/jsonx"])
def test_j07_other_types_take_a_text_and_refuse_what_is_none(media_type: str) -> None:
    assert body(datacontenttype=media_type, data="<a/>")["data"] == "<a/>"
    assert record("binary", datacontenttype=media_type, data="<a/>").value == b"<a/>"
    for data in ({"a": 1}, None, 5, ["a"]):
        assert refused(datacontenttype=media_type, data=data) == {"data"}


def test_j08_data_without_a_media_type_are_json() -> None:
    text = "I'm just a string"

    assert headers(data=text)["content-type"] == b"application/json"
    assert record("binary", data=text).value == b'"I\'m just a string"'
    assert body(data=text) == event(data=text)


def test_j09_null_is_data_and_nothing_is_none() -> None:
    assert record("binary", data=None).value == b"null"
    assert record("binary").value is None
    assert body(data=None) == event(data=None)
    assert "data" not in body()
    assert read(event(data=None)) == event(data=None)
    sent = record("binary", data=None)
    assert decode(sent.headers, None, sent.value) == event(datacontenttype="application/json", data=None)


def test_j10_a_text_of_json_stays_a_text() -> None:
    text = '{"a":1}'

    assert read(event(data=text))["data"] == text
    for mode in ("binary", "structured"):
        sent = record(mode, datacontenttype="application/json", data=text)  # type: ignore[arg-type]
        assert decode(sent.headers, None, sent.value)["data"] == text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 2**64, -(2**63) - 1])
def test_j11_numbers_that_json_has_not_are_refused(number: float) -> None:
    for data in (number, {"a": [None, (number,)]}):
        assert refused(data=data) == {"data"}
        assert refused(data=data, datacontenttype="application/ld+json; charset=utf-8") == {"data"}


@pytest.mark.parametrize("literal", ["1.10", "12345678901234567890.123", "1E+2", "-0.0"])
def test_j11_decimal_numbers_keep_their_digits(literal: str) -> None:
    for mode in ("binary", "structured"):
        value = record(mode, data={"price": Decimal(literal)}).value  # type: ignore[arg-type]
        assert value is not None
        assert b'{"price":' + literal.encode() + b"}" in value
    assert refused(data=Decimal("NaN")) == refused(data=[Decimal("Infinity")]) == {"data"}


def test_j11_null_beside_numbers_is_no_nan() -> None:
    assert record("binary", data={"a": None, "b": [1.5, "null"]}).value == b'{"a":null,"b":[1.5,"null"]}'


@pytest.mark.parametrize("data", [object(), {1: "a"}, {"a": {"b"}}, "\ud800"])
def test_what_is_no_json_is_refused(data: object) -> None:
    assert refused(data=data) == {"data"}


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"5", b"null", b"\xff", b'{"id":NaN}', b'"{}"', b"[" * 100_000, b'{"a":"\\ud800"}']
)
def test_a_structured_value_that_is_no_json_object_is_refused(value: bytes) -> None:
    with pytest.raises(CloudEventError) as caught:
        decode(STRUCTURED, None, value)
    assert caught.value.attribute == "value"


@pytest.mark.parametrize("value", [b"", b"NaN", b'{"a":1', b"1E400", b"[" * 100_000, b"9" * 5000])
def test_bytes_that_are_no_json_stay_bytes(value: bytes) -> None:
    sent_event = event(datacontenttype="application/json", data=value)

    for mode in ("binary", "structured"):
        sent = record(mode, **sent_event)  # type: ignore[arg-type]
        assert set(decode(sent.headers, None, sent.value)) == {*EVENT, "datacontenttype", "data_base64"}
