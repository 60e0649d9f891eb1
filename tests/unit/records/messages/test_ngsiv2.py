"""The body format `ngsiv2`: the entity as its source sent it, without the broker's builtins."""

from __future__ import annotations

import pytest

from contexture.records.messages.content import MessageError, write_json
from contexture.sources.ngsi.entity import parse_entity
from tests.samples_location import samples_or_skip


def test_the_body_is_the_entity_as_received_without_builtins() -> None:
    received = (
        b'{"type":"car","id":"car1","speed":{"type":"Number","value":1.0E2,"metadata":{"accuracy":{"type":"Number","value":0.10}}},'
        b'"name":{"value":"\xc3\xa9 <b>","type":"Text"},"gone":{"type":"None","value":null,"metadata":{}},'
        b'"dateModified":{"type":"DateTime","value":"2026-11-21T05:38:57.734Z","metadata":{}},'
        b'"servicePath":{"type":"Text","value":"/4wheels","metadata":{}}}'
    )
    assert write_json(parse_entity(received, service="vehicles").entity) == (
        b'{"type":"car","id":"car1","speed":{"type":"Number","value":1.0E2,"metadata":{"accuracy":{"type":"Number","value":0.10}}},'
        b'"name":{"value":"\xc3\xa9 <b>","type":"Text"},"gone":{"type":"None","value":null,"metadata":{}}}'
    )


def test_an_entity_that_is_no_text_is_rejected() -> None:
    with pytest.raises(MessageError):
        write_json({"id": "\ud800"})


def test_real_entities_keep_their_numbers() -> None:
    station = samples_or_skip() / "ngsi" / "Weather" / "WeatherObserved" / "v2-normalized.json"
    text = write_json(parse_entity(station.read_bytes(), service="s").entity)
    assert b'"uVIndexMax":{"type":"Number","value":1.0}' in text
    assert b'"coordinates":[-4.754444444,41.640833333]' in text
