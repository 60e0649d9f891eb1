"""What a write changes, and which times it moves."""

from __future__ import annotations

import orjson
import pytest

from builders.context_broker import Client


def _modified(client: Client, entity_id: str) -> str:
    text = client.get(f"v2/entities/{entity_id}", attrs="dateModified")["dateModified"]["value"]
    assert isinstance(text, str)
    client.broker.store.clock.advance(1)
    return text


def test_the_same_value_leaves_the_modification_time(client: Client) -> None:
    client.create("a", n={"value": 1})
    before = _modified(client, "a")
    assert client.ask("PATCH", "v2/entities/a/attrs", {"n": {"value": 1}}).status == 204
    assert _modified(client, "a") == before


def test_another_value_moves_it_and_keeps_type_and_metadata(client: Client) -> None:
    client.create("a", n={"value": 1, "type": "Speed", "metadata": {"unit": {"value": "km"}}}, m={"value": 1})
    before = _modified(client, "a")
    assert client.ask("PATCH", "v2/entities/a/attrs", {"n": {"value": 2}}).status == 204
    assert _modified(client, "a") > before
    entity = client.get("v2/entities/a", metadata="*,dateModified,dateCreated")
    assert entity["n"]["value"] == 2
    assert entity["n"]["type"] == "Speed"
    assert entity["n"]["metadata"]["unit"] == {"type": "Text", "value": "km"}
    assert entity["n"]["metadata"]["dateModified"]["value"] > entity["n"]["metadata"]["dateCreated"]["value"]
    assert entity["m"]["metadata"]["dateModified"]["value"] == before


def test_a_forced_update_moves_it_even_without_a_difference(client: Client) -> None:
    client.create("a", n={"value": 1})
    before = _modified(client, "a")
    assert client.ask("PATCH", "v2/entities/a/attrs", {"n": {"value": 1}}, options="forcedUpdate").status == 204
    assert _modified(client, "a") > before


def test_a_replacement_moves_it_even_without_a_difference(client: Client) -> None:
    client.create("a", n={"value": 1})
    before = _modified(client, "a")
    assert client.ask("PUT", "v2/entities/a/attrs", {"n": {"value": 1}}).status == 204
    assert _modified(client, "a") > before


def test_patching_an_attribute_that_is_not_there_is_refused(client: Client) -> None:
    client.create("a", n={"value": 1})
    assert client.ask("PATCH", "v2/entities/a/attrs", {"m": {"value": 1}}).status == 404


@pytest.mark.parametrize(
    ("action", "status", "expected"),
    [
        ("append", 204, {"n": 2, "m": 3}),
        ("appendStrict", 422, {"n": 1}),
        ("replace", 204, {"n": 2, "m": 3}),
        ("update", 404, {"n": 1}),
        ("nonsense", 400, {"n": 1}),
    ],
)
def test_batch_actions(client: Client, action: str, status: int, expected: dict[str, int]) -> None:
    client.create("a", n={"value": 1})
    entity = {"id": "a", "type": "Park", "n": {"value": 2}, "m": {"value": 3}}
    answer = client.ask("POST", "v2/op/update", {"actionType": action, "entities": [entity]})
    assert answer.status == status
    assert client.get("v2/entities/a", options="keyValues") == {"id": "a", "type": "Park", **expected}


def test_a_batch_deletes_entities(client: Client) -> None:
    client.create("a")
    client.create("b")
    body = {"actionType": "delete", "entities": [{"id": "a", "type": "Park"}]}
    assert client.ask("POST", "v2/op/update", body).status == 204
    assert client.ids() == ["b"]


def test_one_attribute_can_be_read_written_and_removed(client: Client) -> None:
    client.create("a", n={"value": 1}, place={"value": {"city": "x"}})
    assert client.ask("PUT", "v2/entities/a/attrs/n", {"value": 5}).status == 204
    assert client.get("v2/entities/a/attrs/n") == {"type": "Number", "value": 5, "metadata": {}}
    assert client.get("v2/entities/a/attrs/place/value") == {"city": "x"}
    assert client.ask("DELETE", "v2/entities/a/attrs/n").status == 204
    assert client.ask("GET", "v2/entities/a/attrs/n").status == 404
    assert client.get("v2/entities/a/attrs", options="keyValues") == {"place": {"city": "x"}}


def test_whole_numbers_come_back_without_a_point_as_from_orion(client: Client) -> None:
    client.create("a", n={"value": [1.0, 2.5, {"deep": 3.0}]})
    assert orjson.dumps(client.get("v2/entities/a")["n"]["value"]) == b'[1,2.5,{"deep":3}]'


def test_a_transient_entity_vanishes_at_its_time(client: Client) -> None:
    client.create("a", dateExpires={"type": "DateTime", "value": "2100-01-01T00:00:00Z"})
    assert client.get("v2/entities/a", attrs="dateExpires")["dateExpires"]["value"] == "2100-01-01T00:00:00.000Z"
    client.broker.store.clock.advance(3600 * 24 * 365 * 80)
    assert client.ids() == []


def test_one_id_in_two_paths_is_two_entities(client: Client) -> None:
    client.create("a")
    created = client.ask("POST", "v2/entities", {"id": "a", "type": "Park"}, headers={"fiware-servicepath": "/other"})
    assert created.status == 201
    everywhere = {"fiware-servicepath": "/#"}
    assert client.ask("GET", "v2/entities/a", headers=everywhere).status == 409
    assert client.ask("GET", "v2/entities/a").status == 200


@pytest.mark.parametrize("path", ["/#", "/a,/b"])
def test_a_write_goes_to_one_path(client: Client, path: str) -> None:
    answer = client.ask("POST", "v2/entities", {"id": "a", "type": "Park"}, headers={"fiware-servicepath": path})
    assert answer.status == 400


def test_tenants_are_lower_case(client: Client) -> None:
    client.create("a")
    upper = client.ask("GET", "v2/entities", headers={"fiware-service": "CITY"})
    assert [entity["id"] for entity in orjson.loads(upper.body)] == ["a"]


def test_a_body_above_a_megabyte_or_without_a_length_is_refused(client: Client) -> None:
    big = {"id": "a", "type": "T", "n": {"value": "x" * 1_048_576}}
    assert client.ask("POST", "v2/entities", big).status == 413
    del client.headers["fiware-service"]
    assert client.ask("POST", "v2/entities").status == 411
