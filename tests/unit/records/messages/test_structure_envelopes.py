"""Envelopes of structures: what columns of headers and values say together."""

from __future__ import annotations

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.event_schema import faults_of
from builders.outboxes import publication
from builders.structure_runs import registry_publication
from contexture.records.cloudevents import CloudEventError, decode
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import StructureContent, StructureEnvelope, message_in, structure_envelope

URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"
XML = "application/vnd.sdmx.structure+xml;version=2.1"
JSON = "application/vnd.sdmx.structure+json;version=2.0.0"
FUSION = "application/vnd.fusion.json"
EDI = "application/vnd.sdmx.structure;version=edi"
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
HASH = b"\x01" * 32
ATTRIBUTES = {"specversion": "1.0", "source": "/sdmx/registry", "subject": URN, "time": "2026-03-01T08:00:00Z"}


def made(kind: str) -> StructureEnvelope:
    found = structure_envelope(registry_publication(message={"envelope": f"cloudevents-{kind}"}))
    assert found is not None
    return found


def content(**changes: Any) -> StructureContent:
    return StructureContent(URN, XML, HASH, RunReference(registry_transaction=7, modified_at=AT))._replace(**changes)


def headers(wrapped: StructureEnvelope, values: tuple[bytes | None, ...]) -> dict[str, bytes]:
    varying = zip(wrapped.columns, values, strict=True)
    constant = {name: value.encode() for name, value in wrapped.constant}
    return constant | {name: value for name, value in varying if value is not None}


def event(kind: str, content: StructureContent, message: bytes) -> dict[str, object]:
    """The event as a consumer reads it."""
    wrapped = made(kind)
    value = wrapped.event(content, message) if wrapped.is_structured else message
    return decode(headers(wrapped, wrapped.headers(content)), URN.encode(), value)


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_an_event_is_the_same_in_both_modes(kind):
    found = event(kind, content(), b"<a>\xc3\xa9</a>")

    assert len(str(found.pop("id"))) == 32
    assert found == {
        **ATTRIBUTES,
        "type": "contexture.sdmx.structure.upsert",
        "datacontenttype": XML,
        "dataschema": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message",
        "data": "<a>é</a>",
    }
    assert event(kind, content(), b"<a/>")["id"] == event("binary", content(), b"<a/>")["id"]


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_a_deletion_is_a_binary_event_without_data_in_both_modes(kind):
    wrapped = made(kind)

    found = decode(headers(wrapped, wrapped.deletion(content())), URN.encode(), None)

    assert len(str(found.pop("id"))) == 32
    assert found == {**ATTRIBUTES, "type": "contexture.sdmx.structure.delete"}


@pytest.mark.parametrize("media_type", [XML, JSON, FUSION, EDI])
def test_a_structured_event_is_valid_by_the_schema_of_the_json_format(media_type):
    assert faults_of(made("structured").event(content(media_type=media_type), b'{"a":1}')) == []


def test_only_what_varies_has_a_column():
    attributes = ("ce_id", "ce_source", "ce_type", "ce_subject", "ce_time")

    assert made("binary").columns == (*attributes, "ce_dataschema", "content-type")
    assert made("binary").constant == (("ce_specversion", "1.0"),)
    assert made("structured").columns == ("ce_specversion", *attributes, "content-type")
    assert made("structured").constant == ()
    sent = made("structured").headers(content())
    assert headers(made("structured"), sent) == {"content-type": b"application/cloudevents+json"}


@pytest.mark.parametrize(
    ("media_type", "message", "member", "expected"),
    [
        (XML, b'<?xml version="1.0"?>\n<a b="c"/>', "data", b'"<?xml version=\\"1.0\\"?>\\n<a b=\\"c\\"/>"'),
        # Not the UTF-8 that a text without a charset is: its bytes stay what they are.
        (XML, '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"), "data_base64", None),
        (XML, "<a/>".encode("utf-16"), "data_base64", None),
        (JSON, b'{"data": {"codelists": [], "n": 1.0E5}}', "data", b'{"data": {"codelists": [], "n": 1.0E5}}'),
        (JSON, b"{broken", "data_base64", None),
        # No media type of JSON by RFC 6839: a reader would not know that it is.
        (FUSION, b'{"a":1}', "data_base64", None),
        (EDI, b"UNA:+.? 'UNB", "data_base64", None),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", b"PK\x03\x04", "data_base64", None),
        (None, b"<a/>", "data_base64", None),
    ],
)
def test_a_message_is_in_json_as_what_its_media_type_says_and_is_never_changed(media_type, message, member, expected):
    value = made("structured").event(content(media_type=media_type), message)
    found = orjson.loads(value)

    assert {"data", "data_base64"} & found.keys() == {member}
    assert found.get("datacontenttype") == media_type
    if expected is None:
        assert b64decode(found["data_base64"]) == message
    else:
        assert value.endswith(b',"data":' + expected + b"}")


MESSAGES = (
    st.binary(max_size=40) | st.text(max_size=40).map(str.encode) | st.sampled_from([b'{"a": 1.0E5 }', b" [1]\n"])
)


@given(MESSAGES, st.sampled_from([XML, JSON, FUSION, EDI, None]))
def test_whatever_a_message_is_its_bytes_come_back(message, media_type):
    value = made("structured").event(content(media_type=media_type), message)

    found, declared = message_in(value)

    assert declared == media_type
    # White space around JSON is no part of it, and a reader can't distinguish it from the event's own.
    assert found == message or (media_type == JSON and found == message.strip())


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"data_base64":"?"}', b'{"datacontenttype":"text/xml","data":1}']
)
def test_what_is_no_structured_event_holds_no_message(value):
    with pytest.raises(ValueError):
        message_in(value)


def test_the_id_is_of_the_registrys_transaction():
    ids = {
        made("binary").headers(each)[0]
        for each in (
            content(),
            content(occasion=RunReference(registry_transaction=8, modified_at=AT)),
            content(content_hash=b"\x02" * 32),
            content(urn=URN.replace("SEX", "AGE")),
        )
    }

    assert len(ids) == 4
    assert made("binary").deletion(content())[0] not in ids


def test_what_no_event_can_show_is_refused_and_its_deletion_goes_out_bare():
    odd = content(urn=f"{URN}\u0085")
    for wrapped in (made("binary"), made("structured")):
        for urn, media_type, attribute in ((odd.urn, XML, "subject"), (URN, "no type", "datacontenttype")):
            with pytest.raises(CloudEventError) as caught:
                wrapped.check(urn, media_type)
            assert caught.value.attribute == attribute
        assert set(wrapped.deletion(odd)) == {None}


def test_headers_count_into_the_size_of_a_record():
    wrapped = made("structured")

    assert wrapped.size(wrapped.headers(content())) == len("content-type") + len("application/cloudevents+json") + 10
    assert made("binary").size((None,) * 7) == len("ce_specversion1.0") + 10


def test_a_publication_without_an_envelope_has_none():
    assert structure_envelope(publication()) is None


@pytest.mark.parametrize("kind", ["binary", "structured"])
@pytest.mark.parametrize(("partition_key", "expected"), [("agency", "SDMX"), ("class", "Codelist"), ("identity", URN)])
def test_an_event_names_the_part_of_its_urn_that_it_is_partitioned_by(kind, partition_key, expected):
    message = {"envelope": f"cloudevents-{kind}", "partition_key": partition_key}
    wrapped = structure_envelope(registry_publication(message=message))
    assert wrapped is not None
    value = wrapped.event(content(), b"<a/>") if wrapped.is_structured else b"<a/>"
    assert decode(headers(wrapped, wrapped.headers(content())), URN.encode(), value)["partitionkey"] == expected
    deleted = headers(wrapped, wrapped.deletion(content()))
    assert deleted["ce_partitionkey"] == expected.encode()
    assert deleted["ce_subject"] == URN.encode()
    assert "ce_dataschema" not in deleted
