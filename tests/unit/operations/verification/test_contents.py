"""Content hashes read from the values of records."""

from __future__ import annotations

from typing import Any

import pytest

from builders.outboxes import publication
from builders.registry import SEX_AND_FLOW
from builders.structure_runs import registry_publication, upserts
from contexture.events import content_hash
from contexture.operations.verification.contents import UNREADABLE, content_reader
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import StructureContent, structure_envelope

CAR = {"id": "car1", "type": "car", "speed": {"type": "Number", "value": 1}}


def read(value: bytes, **changes: Any) -> bytes:
    reader = content_reader(publication(**changes))
    assert reader is not None
    return reader(value)


def test_an_entity_has_the_hash_of_its_canonical_form() -> None:
    value = b'{"type": "car", "speed": {"value": 1, "type": "Number"}, "id": "car1"}'

    assert read(value) == content_hash(CAR)
    assert read(value, message={"envelope": "cloudevents-binary"}) == content_hash(CAR)


def test_a_number_in_another_notation_is_another_content() -> None:
    assert read(b'{"a":1.0}') != read(b'{"a":1}')


def test_the_entity_of_a_structured_event_is_its_data() -> None:
    event = b'{"specversion":"1.0","data":{"id":"car1","type":"car","speed":{"type":"Number","value":1}}}'

    assert read(event, message={"envelope": "cloudevents-structured"}) == content_hash(CAR)


def test_an_attribute_is_read_without_the_identity_of_its_entity() -> None:
    value = b'{"id":"car1","type":"car","speed":{"type":"Number","value":1}}'

    assert read(value, topics={"data_model": "dm-by-attribute"}) == content_hash({"speed": CAR["speed"]})


@pytest.mark.parametrize("value", [b"", b"not json", b"[]", b'"text"', b"\xff", b"[" * 10_000])
def test_what_is_no_entity_is_equal_to_nothing(value: bytes) -> None:
    assert read(value) == UNREADABLE


@pytest.mark.parametrize("body", [SEX_AND_FLOW, b"PK\x03\x04 a sheet", "<broken é".encode("latin-1")])
def test_a_structure_in_an_event_has_the_hash_of_the_structure(body: bytes) -> None:
    for message, media_type in [(row.body or b"", row.media_type) for row in upserts(SEX_AND_FLOW)] + [(body, "x/y")]:
        owner = registry_publication(message={"envelope": "cloudevents-structured"})
        envelope, in_event = structure_envelope(owner), content_reader(owner)
        bare = content_reader(registry_publication())
        assert envelope is not None
        assert in_event is not None
        assert bare is not None
        event = envelope.event(StructureContent("urn:a", media_type, bytes(32), RunReference()), message)
        assert in_event(event) == bare(message)
    assert in_event(b"{}") == UNREADABLE


@pytest.mark.parametrize("name", ["cygnus-lines", "ngsiv1", "ngsi-ld"])
def test_forms_that_can_not_be_turned_back_are_not_read(name: str) -> None:
    assert content_reader(publication(message={"format": name})) is None
