"""A registry's publication whose home is lost: its topics show what has to be deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from builders.registry import urn
from builders.replica_world import World
from contexture.errors import ConfigurationError
from contexture.kafka import TopicRecord
from contexture.operations.recovery.state import RebuiltState, rebuilding
from contexture.operations.verification.topics import TopicSnapshot
from contexture.sending import SenderNames
from fakes.kafka_cluster import FakeLedger

A, B, C = urn("CL_A", "1.0"), urn("CL_B", "1.0"), urn("CL_C")
ROUTED = {"topics": ["one", "two"], "routes": [{"select": "Codelist=X:CL_A(*)", "topics": ["a-{agency}"]}]}


class WorldsTopics:
    """What a read-committed reader gets of a world's topics."""

    def __init__(self, world: World) -> None:
        self._world = world

    def cut(self, topics: Iterable[str]) -> TopicSnapshot:
        ledger = FakeLedger(self._world.cluster, SenderNames(self._world.publication.name))
        entry, ends = ledger.read(0), {(name, 0): len(self._world.cluster.committed) for name in topics}
        return TopicSnapshot(ends, frozenset(), (), {} if entry is None else {0: entry})

    def records(self, cut: TopicSnapshot) -> Iterator[TopicRecord]:
        for offset, sent in enumerate(self._world.cluster.committed):
            if (sent.topic, 0) in cut.ends:
                yield TopicRecord(sent.topic, 0, offset, sent.key, sent.value, (), None)


def lose_home(world: World) -> None:
    shutil.rmtree(world.instances[0].storage.root)


def rebuild(world: World, **options: bool) -> RebuiltState:
    topics = WorldsTopics(world)
    with rebuilding(
        world.instances[0].storage.publication(world.publication.name), world.publication, topics, ["one", "two", "a-X"]
    ) as (made, found):
        made.write(**options)
    return found


@pytest.mark.parametrize("has_log", [True, False])
def test_what_was_deleted_meanwhile_is_deleted_by_the_next_full_run(tmp_path: Path, has_log: bool) -> None:
    world = World(tmp_path, has_log=has_log, topics=ROUTED)
    world.registry.submit({A: ("x",), B: ("y",), C: ("z",)})
    world.instances[0].run("full")
    lose_home(world)
    world.registry.submit({B: ("changed",)}, delete=[A])

    found = rebuild(world)
    assert (found.found, found.with_content, found.left_alone) == (3, 3, {})
    pointer = world.instances[0].storage.publication("structures").state.pointer()
    assert (pointer.sequence, pointer.full_run_due) == (1, "state was rebuilt from the topics")
    world.instances[0].run("full")

    assert world.replica() == world.expected()
    assert set(world.replica()["one"]) == {B, C}
    assert "a-X" not in world.replica()


def test_without_it_the_next_full_run_leaves_what_was_deleted(tmp_path: Path) -> None:
    world = World(tmp_path, has_log=False, topics=ROUTED)
    world.registry.submit({A: ("x",), B: ("y",)})
    world.instances[0].run("full")
    lose_home(world)
    world.registry.submit(delete=[A])

    world.instances[0].run("full")
    assert set(world.replica()["one"]) == {A, B}

    assert rebuild(world).found == 1
    world.instances[0].run("full")
    assert world.replica() == world.expected()


def test_contents_and_references_are_those_that_state_had(tmp_path: Path) -> None:
    world = World(tmp_path, topics=ROUTED)
    world.registry.submit({A: ("x",), B: ("y",)})
    world.instances[0].run("full")
    state = world.instances[0].storage.publication("structures").state
    columns = ["identity", "entity_hash", "content_hash", "topics", "key"]
    before = state.table(state.pointer(), columns).to_pylist()
    lose_home(world)

    rebuild(world)

    after = state.table(state.pointer(), columns).to_pylist()
    assert [{**row, "topics": sorted(row["topics"])} for row in after] == [
        {**row, "topics": sorted(row["topics"])} for row in before
    ]


def test_a_registrys_next_run_is_never_published_in_parts(tmp_path: Path) -> None:
    world = World(tmp_path, topics=ROUTED)
    world.registry.submit({A: ("x",)})
    world.instances[0].run("full")
    lose_home(world)

    with pytest.raises(ConfigurationError, match="leave --only-differences out"):
        rebuild(world, only_differences=True)
