"""Envelopes of a publication's records: columns of headers, which together say what `encode` says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from builders.event_schema import faults_of
from builders.outboxes import publication
from contexture.errors import DefectError
from contexture.events import AttributeName, ContextIdentity, identity_key
from contexture.records.cloudevents import CloudEventError, decode
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import Envelope, envelope

CAR = ContextIdentity("vehicles", "/4wheels", "car1", "car")
KEY = identity_key(CAR)
VALUE = b'{"id":"car1","type":"car","speed":{"type":"Number","value":1.0E2,"metadata":{}}}'
OCCASION = RunReference(modified_at=datetime(2026, 3, 1, 8, tzinfo=UTC))
HASH = b"\x01" * 32

ATTRIBUTES = {
    "specversion": "1.0",
    "source": "/ngsi/context_broker/vehicles/4wheels",
    "subject": "car1",
    "entitytype": "car",
}


def made(kind: str, form: str = "ngsiv2") -> Envelope:
    found = envelope(publication(message={"format": form, "envelope": f"cloudevents-{kind}"}))
    assert found is not None
    return found


def headers(wrapped: Envelope, values: tuple[bytes | None, ...]) -> dict[str, bytes]:
    """All headers of a record, the constant ones among them."""
    varying = zip(wrapped.columns, values, strict=True)
    constant = {name: value.encode() for name, value in wrapped.constant}
    return constant | {name: value for name, value in varying if value is not None}


def upsert(wrapped: Envelope, identity: ContextIdentity = CAR, attribute: AttributeName | None = None) -> Any:
    return wrapped.upsert(identity, attribute, VALUE, content_hash=HASH, occasion=OCCASION)


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_an_event_is_the_same_in_both_modes(kind):
    value, found = upsert(made(kind))

    event = decode(headers(made(kind), found), None, value)

    assert len(str(event.pop("id"))) == 32
    assert event == {
        **ATTRIBUTES,
        "type": "contexture.ngsi.entity.upsert",
        "time": "2026-03-01T08:00:00Z",
        "datacontenttype": "application/json",
        "data": orjson.loads(VALUE),
    }


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_a_deletion_is_a_binary_event_without_data_in_both_modes(kind):
    wrapped = made(kind)

    event = decode(headers(wrapped, wrapped.deletion(KEY, content_hash=HASH, occasion=OCCASION)), KEY, None)

    assert len(str(event.pop("id"))) == 32
    assert event == {**ATTRIBUTES, "type": "contexture.ngsi.entity.delete"}


def test_a_binary_value_is_the_body_and_a_structured_one_holds_it_with_its_literals():
    assert upsert(made("binary")).value == VALUE
    assert upsert(made("structured")).value.endswith(b',"data":' + VALUE + b"}")


@pytest.mark.parametrize("form", ["ngsiv2", "ngsiv1", "ngsi-ld"])
def test_a_structured_event_is_valid_by_the_schema_of_the_json_format(form):
    assert faults_of(upsert(made("structured", form)).value) == []


def test_only_what_varies_has_a_column():
    binary, structured = made("binary"), made("structured")

    assert binary.constant == (("ce_specversion", "1.0"),)
    assert binary.columns == (
        *("ce_id", "ce_source", "ce_type", "ce_subject", "ce_time", "ce_entitytype", "ce_attributename"),
        *("ce_datasetid", "content-type"),
    )
    assert structured.constant == ()
    assert structured.columns == ("ce_specversion", *binary.columns)
    assert headers(structured, upsert(structured).headers) == {"content-type": b"application/cloudevents+json"}


@pytest.mark.parametrize("kind", ["binary", "structured"])
def test_an_attributes_deletion_names_it_as_its_event_did(kind):
    wrapped = made(kind)
    for attribute in (AttributeName("speed"), AttributeName("speed", "urn:gps")):
        value, found = upsert(wrapped, attribute=attribute)
        gone = wrapped.deletion(identity_key(CAR, attribute), content_hash=HASH, occasion=OCCASION)

        before = decode(headers(wrapped, found), None, value)
        after = decode(headers(wrapped, gone), None, None)
        for name in ("source", "subject", "entitytype", "attributename", "datasetid"):
            assert before.get(name) == after.get(name), name
        assert after["type"] == "contexture.ngsi.attribute.delete"


@pytest.mark.parametrize(
    ("form", "media_type"),
    [
        ("ngsiv2", b"application/json"),
        ("ngsiv1", b"application/json"),
        ("cygnus-lines", b"application/json"),
        ("ngsi-ld", b"application/ld+json"),
    ],
)
def test_the_media_type_is_that_of_the_format(form, media_type):
    wrapped = made("binary", form)

    assert headers(wrapped, upsert(wrapped).headers)["content-type"] == media_type


def test_what_no_event_can_show_is_refused_and_its_deletion_goes_out_bare():
    odd = ContextIdentity("vehicles", "/4wheels", "car\u0085", "car")
    for wrapped in (made("binary"), made("structured")):
        with pytest.raises(CloudEventError) as caught:
            upsert(wrapped, odd)
        assert caught.value.attribute == "subject"
        gone = wrapped.deletion(identity_key(odd), content_hash=HASH, occasion=OCCASION)
        assert set(gone) == {None}


def test_headers_count_into_the_size_of_a_record():
    wrapped = made("structured")

    assert wrapped.size(upsert(wrapped).headers) == len("content-type") + len("application/cloudevents+json") + 10
    assert made("binary").size((None,) * 9) == len("ce_specversion1.0") + 10


def test_a_publication_without_an_envelope_has_none():
    assert envelope(publication()) is None


def test_structures_have_an_envelope_of_their_own():
    plain = publication()
    message = plain.message.model_copy(update={"format": "sdmx", "envelope": "cloudevents-binary"})

    with pytest.raises(DefectError, match="sdmx has an envelope of its own"):
        envelope(plain.model_copy(update={"message": message}))


@pytest.mark.parametrize("kind", ["binary", "structured"])
@pytest.mark.parametrize(
    ("partition_key", "expected"),
    [("type", "car"), ("service_path", "/4wheels"), ("identity", '["vehicles","/4wheels","car1","car"]')],
)
def test_an_event_names_what_it_is_partitioned_by_where_that_is_asked_for(kind, partition_key, expected):
    wrapped = envelope(publication(message={"envelope": f"cloudevents-{kind}", "partition_key": partition_key}))
    assert wrapped is not None
    sent = upsert(wrapped)
    found = decode(headers(wrapped, sent.headers), KEY, sent.value)
    assert found["partitionkey"] == expected
    deleted = headers(wrapped, wrapped.deletion(KEY, content_hash=HASH, occasion=OCCASION))
    assert deleted["ce_partitionkey"] == expected.encode()


def test_an_entity_without_a_type_has_no_partitionkey_by_type():
    wrapped = envelope(publication(message={"envelope": "cloudevents-binary", "partition_key": "type"}))
    assert wrapped is not None
    assert "ce_partitionkey" not in headers(wrapped, upsert(wrapped, CAR.__class__("s", "/", "x", "")).headers)
