"""Laws: whatever an event holds, what is read from its record is that event."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.cloud_events import EVENT
from builders.event_schema import faults_of
from contexture.records.cloudevents import CloudEventError, Template, decode, encode
from contexture.records.cloudevents.values import is_timestamp, timestamp

TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=8).map("x".__add__)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1)
JSON: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)
MEDIA_TYPES = st.sampled_from(["application/json", "Text/JSON; charset=utf-8", "application/ld+json", "a/b+json;v=1"])
TEXT_TYPES = st.sampled_from(["text/plain", "application/xml", "text/csv; charset=utf-16", "a/b; charset=iso-8859-1"])
OPTIONAL = {"subject": TEXT, "time": st.datetimes(timezones=st.timezones()).map(timestamp).filter(bool), "id": TEXT}


def events(extensions: st.SearchStrategy[Any], data: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[Any]:
    attributes = st.fixed_dictionaries({}, optional=OPTIONAL)
    parts = st.tuples(attributes, st.dictionaries(NAMES, extensions, max_size=3), data)
    return parts.map(lambda three: {**EVENT, **three[1], **three[0], **three[2]})


NO_DATA = st.just({})
JSON_DATA = st.fixed_dictionaries({"datacontenttype": MEDIA_TYPES, "data": JSON})
TEXT_DATA = st.fixed_dictionaries({"datacontenttype": TEXT_TYPES, "data": st.text("aé\n", max_size=5)})
BYTES = st.fixed_dictionaries({"data": st.binary(max_size=20)}, optional={"datacontenttype": MEDIA_TYPES | TEXT_TYPES})


@given(events(TEXT | INTEGERS | st.booleans(), NO_DATA | JSON_DATA | TEXT_DATA))
def test_a_structured_event_is_read_as_it_was(event):
    sent = encode(event, mode="structured")

    assert decode(sent.headers, sent.key, sent.value) == event


@given(events(TEXT, NO_DATA | JSON_DATA | TEXT_DATA))
def test_a_binary_event_of_texts_is_read_as_it_was(event):
    sent = encode(event, mode="binary")

    assert decode(sent.headers, sent.key, sent.value) == event


@given(events(TEXT | INTEGERS | st.booleans() | st.binary(max_size=5), NO_DATA | JSON_DATA | TEXT_DATA | BYTES))
def test_what_is_read_is_the_same_in_both_modes_but_for_the_types_of_extensions(event):
    binary, structured = encode(event, mode="binary"), encode(event, mode="structured")
    read = decode(binary.headers, None, binary.value)

    in_json = decode(structured.headers, None, structured.value)
    assert {name: value if name == "data" else in_text(value) for name, value in in_json.items()} == read


def in_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else str(value)


@given(events(TEXT | INTEGERS, NO_DATA | JSON_DATA | TEXT_DATA | BYTES))
def test_what_is_read_can_be_sent_again_and_is_the_same_then(event):
    for mode in ("binary", "structured"):
        sent = encode(event, mode=mode)
        read = decode(sent.headers, None, sent.value)
        again = encode(read, mode=mode)
        assert decode(again.headers, None, again.value) == read


@given(events(TEXT | INTEGERS | st.booleans() | st.binary(max_size=5), NO_DATA | JSON_DATA | TEXT_DATA | BYTES))
def test_k08_a_structured_event_is_valid_by_the_schema_of_the_json_format(event):
    assert faults_of(encode(event, mode="structured").value) == []


@pytest.mark.parametrize(
    "fault",
    [
        {"id": ""},
        {"id": None},
        {"source": "a b"},
        {"time": "2026-01-01"},
        {"dataschema": "no/scheme"},
        {"Upper": "x"},
        {"number": 2**31},
        {"number": 1.5},
        {"list": []},
        {"data_base64": "a"},
        {"data": 1, "data_base64": ""},
    ],
)
def test_k08_the_schema_knows_what_is_no_event(fault):
    assert faults_of(orjson.dumps(EVENT)) == []
    assert faults_of(orjson.dumps({**EVENT, **fault})) != []


@given(events(TEXT | INTEGERS, NO_DATA | JSON_DATA | TEXT_DATA | BYTES), st.data())
def test_a_template_writes_what_encode_writes(event, data):
    names = sorted(set(event) - {"data", "datacontenttype"})
    varying = data.draw(st.lists(st.sampled_from(names), unique=True))
    constant = {name: value for name, value in event.items() if name not in varying and name != "data"}

    for mode in ("binary", "structured"):
        values = [event[name] for name in varying]
        given_data = {"data": event["data"]} if "data" in event else {}
        made = Template(constant, varying, mode).record(values, *given_data.values(), key="k")
        sent = encode(event, mode=mode, key="k")
        assert sorted(made.headers) == sorted(sent.headers)
        assert decode(made.headers, None, made.value) == decode(sent.headers, None, sent.value)
        assert made.key == sent.key
        if mode == "binary":
            assert made.value == sent.value


@given(st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=6), st.binary(max_size=20))
def test_whatever_a_record_holds_reading_it_gives_an_event_or_says_why_not(headers, value):
    for named in (headers, [*headers, ("content-type", b"application/cloudevents+json")]):
        try:
            event = decode(named, None, value)
        except CloudEventError:
            continue
        assert {"id", "source", "type", "specversion"} <= set(event)


@given(st.datetimes(timezones=st.timezones()))
def test_the_text_of_a_moment_is_a_timestamp_unless_its_offset_has_seconds(moment):
    text = timestamp(moment)

    offset = moment.utcoffset()
    assert offset is not None
    assert (text is None) == bool(offset.total_seconds() % 60)
    assert text is None or is_timestamp(text)
