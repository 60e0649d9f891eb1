"""The rules of the core specification about attributes; test names begin with the number in the checklist.

What `encode` refuses `decode` refuses too, in both modes, so each wrong value is tried in all of these ways.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest

from builders.cloud_events import EVENT, body, event, headers, without
from contexture.records.cloudevents import AttributeNameWarning, CloudEventError, decode, encode

STRUCTURED = {"content-type": b"application/cloudevents+json"}
LATER_TIME = datetime(2026, 3, 1, 8, 0, 0, 500, tzinfo=timezone(timedelta(hours=1)))
CONTROL, NONCHARACTER = "a\x07b", "a\ufdd0b"


def refused_by(encoded: dict[str, Any]) -> set[str]:
    """The attribute that writing an event complains about, the same in both modes."""
    found = set()
    for mode in ("binary", "structured"):
        with pytest.raises(CloudEventError) as caught:
            encode(encoded, mode=mode)  # type: ignore[arg-type]
        found.add(caught.value.attribute)
    return found


def refused_in_headers(**labels: bytes) -> str:
    named = {f"ce_{name}": str(value).encode() for name, value in EVENT.items()} | labels
    with pytest.raises(CloudEventError) as caught:
        decode(named, None, None)
    return caught.value.attribute


def refused_in_json(members: dict[str, Any]) -> str:
    with pytest.raises(CloudEventError) as caught:
        decode(STRUCTURED, None, orjson.dumps(members))
    return caught.value.attribute


@pytest.mark.parametrize(
    "name", ["Upper", "under_score", "hyp-hen", "do.t", "sp ace", "ä", "", "line\n", "0-", "data_b"]
)
def test_c01_names_are_lower_case_letters_and_digits(name: str) -> None:
    shown = name.encode(errors="backslashreplace").decode()

    assert refused_by(event(**{name: "x"})) == {shown}
    assert refused_in_json(event(**{name: "x"})) == shown
    if name.islower() and name.isascii():
        assert refused_in_headers(**{f"ce_{name}": b"x"}) == shown


def test_c01_names_of_all_letters_and_digits_are_fine() -> None:
    assert headers(abcdefghijklmnopqrst="x", uvwxyz0123456789="y")["ce_uvwxyz0123456789"] == b"y"


@pytest.mark.parametrize("name", ["a" * 25, "0day"])
def test_c02_a_long_name_and_one_that_begins_with_a_digit_are_warned_of_and_sent(name: str) -> None:
    with pytest.warns(AttributeNameWarning, match="advises"):
        assert headers(**{name: "x"})[f"ce_{name}"] == b"x"


def test_c02_twenty_characters_are_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        headers(abcdefghijklmnopqrsu="x")


def test_c03_no_attribute_is_called_data() -> None:
    assert refused_in_headers(ce_data=b"x") == "data"
    assert refused_in_headers(ce_data_base64=b"eA==") == "data_base64"


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
@pytest.mark.parametrize("value", ["", None, 5, ["x"], b"x", True])
def test_c04_required_attributes_are_texts_that_are_not_empty(name: str, value: object) -> None:
    assert refused_by(event(**{name: value})) == {name}


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_c04_required_attributes_are_there(name: str) -> None:
    assert refused_by(without(name)) == {name}
    assert refused_in_json(without(name)) == name
    assert refused_in_json(event(**{name: None})) == name
    assert refused_in_headers(**{f"ce_{name}": b""}) == name


@pytest.mark.parametrize(
    "source",
    [
        *("/cars", "cars", "//host/path", "https://example.org/a?b=c#d", "urn:uuid:6e8bc430", "mailto:a@example.org"),
        *("a/b:c", "?q", "#f", "1-555-123-4567", "https://[2001:db8::1]:80/", "/%C3%A4", "./a:b", "https://u:p@h:/"),
    ],
)
def test_c04_a_source_is_a_uri_reference(source: str) -> None:
    assert headers(source=source)["ce_source"] == source.encode()


@pytest.mark.parametrize(
    "source",
    ["a b", "/%zz", "/%c", "ä", "1:b", "a<b", "http://[::1", "a[b]", "back\\slash", "a#b#c", '"', "http://h:8x/"],
)
def test_c04_what_is_no_uri_reference_is_refused(source: str) -> None:
    assert refused_by(event(source=source)) == {"source"}
    assert refused_in_headers(ce_source=source.encode()) == "source"


@pytest.mark.parametrize("version", ["0.3", "2.0", "1", "1.0 ", 1.0])
def test_c05_the_version_is_1_0(version: object) -> None:
    assert refused_by(event(specversion=version)) == {"specversion"}
    assert refused_in_json(event(specversion=version)) == "specversion"


def test_c06_encoding_again_gives_the_same_record() -> None:
    sent_event = event(time=datetime(2026, 3, 1, tzinfo=UTC), data={"a": 1})

    for mode in ("binary", "structured"):
        assert encode(sent_event, mode=mode) == encode(sent_event, mode=mode)  # type: ignore[arg-type]


def test_c07_an_attribute_that_occurs_twice_is_refused() -> None:
    named = [(f"ce_{name}", str(value).encode()) for name, value in EVENT.items()]
    for twice in (("ce_id", b"17"), ("CE_ID", b"18")):
        with pytest.raises(CloudEventError) as caught:
            decode([*named, twice], None, None)
        assert caught.value.attribute == "id"
    with pytest.raises(CloudEventError) as caught:
        decode(STRUCTURED, None, b'{"id":"1",' + orjson.dumps(EVENT)[1:])
    assert caught.value.attribute == "id"


def test_c07_members_of_data_may_stand_twice_without_harm() -> None:
    twice = orjson.dumps(EVENT)[:-1] + b',"data":{"a":1,"a":2}}'

    assert decode(STRUCTURED, None, twice)["data"] == {"a": 2}


@pytest.mark.parametrize(
    "time",
    [
        *(
            "2018-04-05T17:31:00Z",
            "2018-04-05t17:31:00.123456789z",
            "2018-04-05T17:31:00-00:00",
            "0000-02-29T00:00:00Z",
        ),
        *("2016-12-31T23:59:60Z", "2017-01-01T05:29:60+05:30", "2016-12-31T15:59:60.5-08:00", "2000-02-29T00:00:00Z"),
    ],
)
def test_c08_times_of_rfc_3339_are_kept_as_they_are(time: str) -> None:
    assert headers(time=time)["ce_time"] == time.encode()
    assert body(time=time)["time"] == time


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("time", text)
            for text in ("2018-04-05T03:56:24", "20180405T035624Z", "2018-13-05T03:56:24Z", "", 1522900584)
        ),
        *(("time", text) for text in ("2018-04-05 03:56:24Z", "2018-04-05T24:00:00Z", "2018-02-29T00:00:00Z", "x")),
        *(("time", text) for text in ("2018-04-05T03:56:60Z", "2018-04-05T03:56:24+24:00", "2018-04-05T03:56:24.Z")),
        *(("time", text) for text in ("2018-04-05T03:60:24Z", "1900-02-29T00:00:00Z", "٢018-04-05T03:56:24Z")),
        ("time", datetime(2018, 4, 5)),  # noqa: DTZ001
        ("time", datetime(2018, 4, 5, tzinfo=timezone(timedelta(seconds=75)))),
        *(
            ("datacontenttype", text)
            for text in ("json", "", "a/b/c", "a/b; c", "text/plain;charset=é", "a/b,c/d", "/")
        ),
        *(("dataschema", text) for text in ("/schema", "", "schema", "//host/schema", "https://a/b c", "https://a/#b")),
        *(("subject", value) for value in ("", 5, b"x")),
    ],
)
def test_c08_wrong_optional_attributes_are_refused(name: str, value: object) -> None:
    assert refused_by(event(**{name: value})) == {name}
    if isinstance(value, str):
        assert refused_in_json(event(**{name: value})) == name


def test_c08_optional_attributes_that_are_right_are_sent() -> None:
    found = headers(dataschema="urn:schema:1", subject="ü", time=datetime(2026, 3, 1, 8, tzinfo=UTC))

    assert (found["ce_dataschema"], found["ce_subject"]) == (b"urn:schema:1", b"\xc3\xbc")
    assert found["ce_time"] == b"2026-03-01T08:00:00Z"


@pytest.mark.parametrize("value", [1.5, {"a": 1}, ["a"], 2147483648, -2147483649, 1 + 0j, float("nan")])
def test_c09_there_are_no_other_types(value: object) -> None:
    assert refused_by(event(myext=value)) == {"myext"}


@pytest.mark.parametrize("value", [1.5, {"a": 1}, ["a"], 2147483648])
def test_c09_there_are_no_other_types_in_json_events_either(value: object) -> None:
    assert refused_in_json(event(myext=value)) == "myext"


@pytest.mark.parametrize(
    ("value", "text", "json"),
    [
        (True, b"true", True),
        (False, b"false", False),
        (0, b"0", 0),
        (-2147483648, b"-2147483648", -2147483648),
        (2147483647, b"2147483647", 2147483647),
        (b"\x00\xff", b"AP8=", "AP8="),
        ("", b"", ""),
        (LATER_TIME, b"2026-03-01T08:00:00.000500+01:00", "2026-03-01T08:00:00.000500+01:00"),
    ],
)
def test_c10_each_type_has_one_text(value: object, text: bytes, json: object) -> None:
    assert headers(myext=value)["ce_myext"] == text
    written = body(myext=value)["myext"]
    assert (written, type(written)) == (json, type(json))


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\nb", "\x7f", "\x85", "\ufdd0", "\ufdef", "\ufffe", "\uffff", "\U0001fffe", "\U0010ffff", "\ud800"],
)
def test_c11_characters_that_no_text_may_hold_are_refused(text: str) -> None:
    assert refused_by(event(myext=text)) == {"myext"}
    assert refused_by(event(subject=f"a{text}")) == {"subject"}


@pytest.mark.parametrize(
    "text", [" ", "\u00a0", "\u00ad", "\ue000", "\u200b", "\ufdcf", "\ufdf0", "\U0001fffd", "😀", "~"]
)
def test_c11_all_other_characters_are_sent(text: str) -> None:
    assert headers(myext=text)["ce_myext"] == text.encode()


def test_c11_characters_are_looked_at_when_they_are_read() -> None:
    assert refused_in_headers(ce_myext=CONTROL.encode()) == "myext"
    assert refused_in_json(event(myext=NONCHARACTER)) == "myext"


@pytest.mark.parametrize("media_type", ["Application/JSON", "APPLICATION/LD+JSON"])
def test_c13_media_types_are_compared_without_case(media_type: str) -> None:
    assert headers(datacontenttype=media_type, data=["a"])["content-type"] == media_type.encode()
    assert body(datacontenttype=media_type, data=["a"])["data"] == ["a"]


def test_c14_sixty_four_kibibytes_are_no_problem() -> None:
    large = "x" * 65536

    sent = encode(event(subject=large, data=large), mode="binary")

    assert decode(sent.headers, None, sent.value)["subject"] == large


def test_c15_errors_show_no_value() -> None:
    with pytest.raises(CloudEventError) as caught:
        encode(event(source="secret value"), mode="binary")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["", 5, b"x"])
def test_c16_a_partitionkey_is_a_text_that_is_not_empty(value: object) -> None:
    assert refused_by(event(partitionkey=value)) == {"partitionkey"}


def test_an_attribute_that_is_none_is_not_set() -> None:
    assert headers(subject=None, myext=None) == headers()
    assert body(subject=None) == EVENT
