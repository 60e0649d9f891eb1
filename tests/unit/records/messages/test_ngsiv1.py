"""The body format `ngsiv1`: the bare context element."""

from __future__ import annotations

import pytest

from contexture.events import parse_json
from contexture.records.messages import MessageError, ngsi_bodies


def body_of(text: bytes, attribute: str | None = None) -> bytes:
    entity = parse_json(text)
    assert isinstance(entity, dict)
    return ngsi_bodies.ngsiv1_body(entity, attribute)


def test_attributes_and_metadata_become_lists_in_the_order_received() -> None:
    text = (
        b'{"type":"car","id":"car1","z":{"type":"Number","value":1.0E2,"metadata":{"unit":{"type":"Text","value":"km/h"},'
        b'"acc":{"value":0.10}}},"a":{"type":"None","value":null}}'
    )
    assert body_of(text) == (
        b'{"id":"car1","type":"car","isPattern":"false","attributes":[{"name":"z","type":"Number","value":1.0E2,'
        b'"metadatas":[{"name":"unit","type":"Text","value":"km/h"},{"name":"acc","type":null,"value":0.10}]},'
        b'{"name":"a","type":"None","value":null,"metadatas":[]}]}'
    )


def test_one_attribute_alone() -> None:
    assert body_of(b'{"id":"i","a":{"type":"T","value":1},"b":{"type":"T","value":2}}', "b") == (
        b'{"id":"i","isPattern":"false","attributes":[{"name":"b","type":"T","value":2,"metadatas":[]}]}'
    )


def test_a_context_element_is_kept_as_received() -> None:
    element = parse_json(
        b'{"isPattern":"true","type":"car","id":"car.*","attributes":'
        b'[{"name":"a","type":"T","value":"1","metadatas":[{"name":"ID","value":"x"}]},{"name":"b","value":1E5}]}'
    )
    assert isinstance(element, dict)
    assert ngsi_bodies.ngsiv1_body({}, None, element) == (
        b'{"id":"car.*","type":"car","isPattern":"true","attributes":'
        b'[{"name":"a","type":"T","value":"1","metadatas":[{"name":"ID","value":"x"}]},'
        b'{"name":"b","value":1E5,"metadatas":[]}]}'
    )


@pytest.mark.parametrize("entity", [{"id": "i", "a": 7}, {"id": "\ud800"}])
def test_what_cannot_be_written_is_rejected_data(entity: dict[str, object]) -> None:
    with pytest.raises(MessageError):
        ngsi_bodies.ngsiv1_body(entity)
