"""Prepared encoders: what is constant is looked at once, and what varies each time."""

from __future__ import annotations

import orjson
import pytest

from builders.cloud_events import event
from contexture.errors import ConfigurationError
from contexture.records.cloudevents import NO_DATA, CloudEventError, Template, decode

SHARED = {"specversion": "1.0", "source": "/cars", "type": "moved", "datacontenttype": "application/json"}


def test_a_template_is_filled_in_for_each_record():
    moved = Template(SHARED, ("id", "subject"), "binary")

    record = moved.record(("17", "car1"), {"speed": 5}, key="car1")

    assert record.headers == [
        ("ce_specversion", b"1.0"),
        ("ce_source", b"/cars"),
        ("ce_type", b"moved"),
        ("ce_id", b"17"),
        ("ce_subject", b"car1"),
        ("content-type", b"application/json"),
    ]
    assert (record.value, record.key) == (b'{"speed":5}', b"car1")


def test_one_record_says_nothing_about_the_next():
    moved = Template(SHARED, ("id", "subject"), "binary")
    moved.record(("17", "car1"), {"speed": 5})

    second = moved.record(("18", None), None)

    assert "ce_subject" not in dict(second.headers)
    assert (dict(second.headers)["ce_id"], second.value, second.key) == (b"18", b"null", None)


def test_a_structured_record_has_all_of_it_in_its_value():
    record = Template(SHARED, ("id",), "structured").record(("17",), {"speed": 5})

    assert record.headers == [("content-type", b"application/cloudevents+json")]
    assert orjson.loads(record.value or b"") == event(datacontenttype="application/json", data={"speed": 5})


def test_a_record_without_data_is_a_tombstone_or_an_event_without_data():
    binary = Template(SHARED, ("id",), "binary").record(("17",))
    structured = Template(SHARED, ("id",), "structured").record(("17",), NO_DATA)

    assert binary.value is None
    assert structured.value is not None
    assert "data" not in decode(structured.headers, None, structured.value)


def test_finished_json_is_taken_as_it_is():
    finished = orjson.Fragment(b'{"speed":5.0E0}')

    assert Template(SHARED, ("id",), "binary").record(("17",), finished).value == b'{"speed":5.0E0}'
    value = Template(SHARED, ("id",), "structured").record(("17",), finished).value
    assert value is not None
    assert value.endswith(b'"data":{"speed":5.0E0}}')


def test_headers_can_be_had_as_columns():
    template = Template(SHARED, ("id", "subject", "myext"), "binary")

    assert template.labels == ("ce_id", "ce_subject", "ce_myext")
    assert template.header_values(("17", None, True)) == (b"17", None, b"true")
    assert template.constant_headers == [
        ("ce_specversion", b"1.0"),
        ("ce_source", b"/cars"),
        ("ce_type", b"moved"),
        ("content-type", b"application/json"),
    ]


@pytest.mark.parametrize(
    ("constant", "varying", "attribute"),
    [
        ({**SHARED, "source": "a b"}, ("id",), "source"),
        (SHARED, (), "id"),
        (SHARED, ("id", "source"), "source"),
        (SHARED, ("id", "id"), "id"),
        (SHARED, ("id", "data"), "data"),
        ({**SHARED, "data_base64": ""}, ("id",), "data_base64"),
        ({"specversion": "1.0", "source": "/", "type": "t"}, ("id", "datacontenttype"), "datacontenttype"),
        ({**SHARED, "My": "x"}, ("id",), "My"),
        ({**SHARED, "datacontenttype": "application/cloudevents+json"}, ("id",), "datacontenttype"),
    ],
)
def test_a_template_that_can_make_no_event_is_refused_at_once(constant, varying, attribute):
    with pytest.raises(CloudEventError) as caught:
        Template(constant, varying, "binary")
    assert caught.value.attribute == attribute


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("values", [("", "s"), (None, "s"), (5, "s"), ("17", ""), ("17", "a\n")])
def test_what_varies_is_checked_each_time(mode, values):
    template = Template(SHARED, ("id", "subject"), mode)

    with pytest.raises(CloudEventError):
        template.record(values, {})


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_data_are_checked_each_time(mode):
    with pytest.raises(CloudEventError, match="NaN"):
        Template(SHARED, ("id",), mode).record(("17",), {"speed": float("nan")})


def test_there_are_no_other_modes():
    with pytest.raises(ConfigurationError):
        Template(SHARED, ("id",), "batch")  # type: ignore[arg-type]
