"""The seeded city: the same every time, and what a broker takes."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.context_broker import Client
from contexture_sandbox.context_broker.entities import bad_entities, changes, seed_entities
from contexture_sandbox.context_broker.loading import Loaded, load
from contexture_sandbox.context_broker.remote import line

ACCEPTED_BY_ORION = {"number-string", "bool-string", "geojson", "null-value", "datetime-range", "future-modified"}


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=60), st.integers())
def test_more_entities_continue_where_fewer_end(one: int, other: int, seed: int) -> None:
    few, many = sorted((one, other))
    assert [line(x) for x in seed_entities(many, seed)][:few] == [line(x) for x in seed_entities(few, seed)]


def test_another_seed_gives_other_numbers_and_the_same_ids() -> None:
    first, second = list(seed_entities(100, 1)), list(seed_entities(100, 2))
    assert [x.entity["id"] for x in first] == [x.entity["id"] for x in second]
    assert [line(x) for x in first] != [line(x) for x in second]


def test_identities_are_unique() -> None:
    seeds = list(seed_entities(5000))
    assert len({(x.service, x.service_path, x.entity["id"], x.entity["type"]) for x in seeds}) == 5000


def test_a_broker_takes_every_entity() -> None:
    for seed in seed_entities(200):
        answer = Client(seed.service, seed.service_path).ask("POST", "v2/entities", seed.entity)
        assert answer.status == 201, (seed.entity["id"], answer.body)


@pytest.mark.parametrize("bad", bad_entities(), ids=lambda bad: f"{bad.rule}-{bad.entity['id']:.20}")
def test_bad_entities_are_what_a_broker_may_hold(bad: object) -> None:
    from contexture_sandbox.context_broker.entities import BadEntity

    assert isinstance(bad, BadEntity)
    client = Client(bad.service, bad.service_path)
    if bad.rule in ACCEPTED_BY_ORION:
        assert client.ask("POST", "v2/entities", bad.entity).status == 201
    assert load(Client(bad.service).broker.store, [bad]) == Loaded(created=1)


def test_the_next_revision_updates_deletes_and_adds() -> None:
    client = Client("vehicles", "/4wheels")
    store = client.broker.store
    load(store, seed_entities(300))
    assert load(store, changes(300)) == Loaded(created=3, changed=10, deleted=1)
    assert load(store, changes(300)) == Loaded(unchanged=14)
    assert orjson.loads(client.ask("GET", "v2/entities/car-new", options="keyValues").body)["speed"] == 42
