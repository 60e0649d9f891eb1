"""Messages of whole transactions from a registry to a reader: kills, several instances, backfills."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from builders.registry import urn
from builders.replica_world import Crashed, World
from contexture.sources.sdmx import split
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from fakes.structure_registry import NOON

A, B, C = urn("A"), urn("B"), urn("C")
AFTER_1 = (NOON + timedelta(minutes=1.5), NOON + timedelta(minutes=1000))
BUNDLES = {"topics": {"topics": ["structures"], "keep": "history"}, "message": {"bundle": "transaction"}}


def made(home: Path, instances: int = 1) -> World:
    """A and B were there from the first transaction on, and are published."""
    world = World(home, instances, **BUNDLES)
    world.registry.submit({A: ("a",), B: ("b",)})
    world.instances[0].run("full")
    return world


def contents(message: bytes) -> dict[str | None, bytes]:
    return {each.urn: each.content_hash for each in split(BytesIO(message))}


def applied(world: World) -> dict[str | None, bytes]:
    """What a reader has that applies each record: structures of a message replace, a key without a value deletes."""
    held: dict[str | None, bytes] = {}
    for sent in world.cluster.committed:
        if sent.topic == "structures" and sent.value is not None:
            assert sent.key is None
            held |= contents(sent.value)
        elif sent.topic == "structures":
            held.pop((sent.key or b"").decode())
    return held


def in_registry(world: World) -> dict[str | None, bytes]:
    found: dict[str | None, bytes] = {}
    for each in world.registry.now:
        found |= contents(world.registry.message(each))
    return found


def rows(world: World, manifest: Manifest) -> list[tuple[int | None, bytes | None, bytes | None]]:
    batches = OutboxShardReader(world.instances[0].storage, manifest, 0).batches(0)
    read = [row for batch in batches for row in batch.to_pylist()]
    return [(row["source_transaction"], row["key"], row["value"]) for row in read]


def live(world: World) -> list[tuple[int | None, bytes | None, bytes | None]]:
    outboxes = world.instances[0].storage.publication("structures").outboxes
    return rows(world, outboxes.manifest(outboxes.all()[-1].outbox))


def test_a_reader_that_applies_messages_has_what_the_registry_holds(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.registry.submit({A: ("second",), C: ("c",)}, delete=[B])
    world.registry.submit({C: ("third",)})

    world.instances[0].run("changes")

    assert world.sent_transactions() == [(1, False, 1), (2, False, 1), (2, True, 1), (3, False, 1)]
    assert applied(world) == in_registry(world)
    assert sorted(filter(None, applied(world))) == [A, C]


@pytest.mark.parametrize("crash", ["prepared", "before commit", "after commit", "sent"])
def test_each_message_is_there_once_whatever_is_killed(tmp_path: Path, crash: str) -> None:
    world = made(tmp_path)
    world.registry.submit({A: ("second",), C: ("c",)}, delete=[B])
    with pytest.raises(Crashed):
        world.instances[0].run("changes", crash=crash)

    world.instances[0].run("changes")

    assert world.sent_transactions() == [(1, False, 1), (2, False, 1), (2, True, 1)]
    assert applied(world) == in_registry(world)


def test_two_instances_send_each_transaction_once(tmp_path: Path) -> None:
    world = made(tmp_path, instances=2)
    world.instances[1].run("changes")
    world.registry.submit({A: ("second",), C: ("c",)})

    for instance in world.instances:
        instance.run("changes")

    assert world.sent_transactions() == [(1, False, 1), (2, False, 1)]


def test_a_backfill_sends_the_same_messages_again(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.registry.submit({A: ("second",), C: ("c",)}, delete=[B])
    world.instances[0].run("changes")

    assert rows(world, world.instances[0].past(AFTER_1)) == live(world)


def test_the_archive_knows_the_structures_of_messages_without_keys(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.registry.submit({A: ("second",)})
    world.registry.submit({A: ("third",), C: ("c",)})
    # The run closes the gap by a comparison, and its landing has rows of more than it sent.
    world.registry.forgotten = 3
    world.instances[0].run("changes")
    sent = live(world)

    manifest = world.instances[0].past(AFTER_1, incomplete="send")

    assert rows(world, manifest) == sent
    assert [contents(value or b"").keys() for _, _, value in sent] == [{A, C}]


def test_what_is_in_a_message_is_listed_beside_it(tmp_path: Path) -> None:
    world = made(tmp_path)
    store: Any = world.instances[0].storage.publication("structures")
    listed = store.outbox(store.outboxes.all()[-1].outbox).table("bundled.parquet").to_pylist()
    assert listed == [
        {"source_transaction": 1, "topic": "structures", "urn": A},
        {"source_transaction": 1, "topic": "structures", "urn": B},
    ]
