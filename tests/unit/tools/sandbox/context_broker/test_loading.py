"""The load hook takes what no API would."""

from __future__ import annotations

import pytest

from builders.context_broker import Client
from contexture_sandbox.context_broker.loading import Loaded, SeedEntity, load, read_lines

ALL = "dateCreated,dateModified,servicePath,*"


def _line(entity: str, more: str = "") -> bytes:
    return f'{{"service":"city","service_path":"/parks","entity":{entity}{more}}}'.encode()


def _body(client: Client, entity: str, more: str = "", **given: str) -> bytes:
    load(client.broker.store, read_lines(_line(entity, more)))
    return client.ask("GET", "v2/entities", **given).body


def test_number_literals_stay_as_written(client: Client) -> None:
    body = _body(
        client, '{"id":"a","type":"T","n":{"type":"Number","value":1.0E5},"m":{"value":12345678901234567890123}}'
    )
    assert b'"n":{"type":"Number","value":1.0E5,' in body
    assert b'"m":{"type":"Number","value":12345678901234567890123,' in body


def test_an_object_that_is_no_normalized_entity_is_shown_as_it_is(client: Client) -> None:
    body = _body(client, '{"id":"a","n":5}', attrs=ALL)
    assert body.startswith(b'[{"id":"a","n":5,"dateCreated":{"type":"DateTime"')
    assert body.endswith(b'"servicePath":{"type":"Text","value":"/parks","metadata":{}}}]')


def test_values_are_not_checked(client: Client) -> None:
    body = _body(client, '{"id":"a/b","type":"T","n":{"type":"DateTime","value":"never"}}')
    assert body == b'[{"id":"a/b","type":"T","n":{"type":"DateTime","value":"never","metadata":{}}}]'


def test_an_entity_without_times_matches_no_condition_on_them(client: Client) -> None:
    body = _body(client, '{"id":"a","type":"T"}', ',"created_at":null,"modified_at":null', attrs=ALL)
    assert b"dateCreated" not in body
    assert client.ids(q="dateCreated>=1970-01-01T00:00:00Z", orderBy="dateCreated") == []
    assert client.ids(q="dateModified<2100-01-01T00:00:00Z") == []
    assert client.ids() == ["a"]


def test_loading_the_same_again_changes_nothing(client: Client) -> None:
    seed = SeedEntity("city", "/parks", {"id": "a", "type": "T", "n": {"value": 1}})
    assert load(client.broker.store, [seed]) == Loaded(created=1)
    before = client.get(attrs=ALL)
    client.broker.store.clock.advance(5)
    assert load(client.broker.store, [seed]) == Loaded(unchanged=1)
    assert client.get(attrs=ALL) == before


def test_a_changed_attribute_moves_its_own_time_and_the_entitys(client: Client) -> None:
    times = "2026-01-01T00:00:00.000500Z"
    old = SeedEntity("city", "/parks", {"id": "a", "type": "T", "n": {"value": 1}, "m": {"value": 1}}, times, times)
    new = SeedEntity("city", "/parks", {"id": "a", "type": "T", "n": {"value": 2}, "m": {"value": 1}})
    load(client.broker.store, [old])
    assert load(client.broker.store, [new]) == Loaded(changed=1)
    (entity,) = client.get(attrs=ALL, metadata="dateModified")
    assert entity["dateCreated"]["value"] == "2026-01-01T00:00:00.000Z"
    assert entity["m"]["metadata"]["dateModified"]["value"] == "2026-01-01T00:00:00.000Z"
    assert entity["n"]["metadata"]["dateModified"]["value"] == entity["dateModified"]["value"]
    assert entity["dateModified"]["value"] > "2026-01-01T00:00:00.000Z"


def test_an_entity_can_be_taken_away(client: Client) -> None:
    seed = SeedEntity("city", "/parks", {"id": "a", "type": "T"})
    load(client.broker.store, [seed])
    assert load(client.broker.store, read_lines(_line('{"id":"a","type":"T"}', ',"delete":true'))) == Loaded(deleted=1)
    assert client.ids() == []


@pytest.mark.parametrize("line", [b"[]", b'{"service":"a","service_path":"/"}', b'{"entity":5}'])
def test_a_line_that_is_no_entity_is_named(line: bytes) -> None:
    with pytest.raises(ValueError, match="line 1"):
        list(read_lines(line))
