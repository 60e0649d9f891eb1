"""A registry's structures from the registry to Kafka and back: the replica equals the registry, whatever was killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from builders.registry import codelist, codelists, urn
from builders.structure_runs import registry_publication
from builders.whole_runs import Lasting, WholeRuns
from contexture.kafka import read_committed
from contexture.kafka.producer import ProducerSession
from contexture.publications import Publication
from contexture.sources.sdmx.registry import RegistryConnection
from contexture_airflow.steps import conclude
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.registry import TestRegistry
from spark_jobs import pipeline

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMES = ["CL_A", "CL_B", "CL_C", "CL_D"]


class Killed(Exception):  # noqa: N818 - a process that ends, not an error of ours
    """The run ends here."""


class Structures(WholeRuns):
    """A publication of everything that a test registry holds."""

    def __init__(self, home: Path, kafka: EmbeddedKafka, registry: TestRegistry) -> None:
        super().__init__(home, kafka)
        self.registry = registry

    def publication(self) -> Publication:
        return registry_publication(
            name=self.name,
            topics={"topics": [self.topic]},
            resync={"on_startup": "full"},
            quality={"minimum_entities": 0},
        )

    def replica(self) -> dict[str, bytes]:
        held: dict[str, bytes] = {}
        for record in read_committed(self.settings, [self.topic]):
            key = (record.key or b"").decode()
            if record.value is None:
                held.pop(key, None)
            else:
                held[key] = record.value
        return held

    def contents(self) -> dict[str, bytes]:
        """The content of each structure that the registry holds."""
        return {name: structure.first.content for name, structure in self.registry.store.current().items()}


@pytest.fixture
def runs(tmp_path: Path, kafka: EmbeddedKafka, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Structures]:
    monkeypatch.setattr(pipeline, "start_session", lambda _name: Lasting(spark))
    with TestRegistry() as registry:
        monkeypatch.setenv("CONTEXTURE_SOURCE_CONNECTION", RegistryConnection(registry.url).to_json())
        yield Structures(tmp_path, kafka, registry)


def change(registry: TestRegistry, chance: random.Random) -> None:
    """A submission or a deletion; the registry's clock moves on."""
    registry.store.clock.advance(1)
    there = [name for name in NAMES if urn(name) in registry.store.current()]
    if there and chance.random() < 0.3:
        registry.delete([urn(name) for name in chance.sample(there, 1)])
    else:
        chosen = chance.sample(NAMES, chance.randint(1, 3))
        registry.submit(codelists(*(codelist(name, "1.0", chance.choice("xyz")) for name in chosen)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_replica_equals_the_registry_after_any_history(
    runs: Structures, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    runs.registry.submit(codelists(codelist("CL_KEPT", "1.0", "x")))
    runs.ran(runs.publication())
    for _ in range(4):
        for _ in range(chance.randint(1, 3)):
            change(runs.registry, chance)
        with monkeypatch.context() as patch, suppress(Killed):
            kill(patch, chance.choice(["never", "in Kafka", "before the end"]))
            runs.ran(runs.publication(), mode=chance.choice(["auto", "auto", "full"]))
    runs.ran(runs.publication())

    contents = runs.contents()
    replica = runs.replica()
    assert replica.keys() == contents.keys()
    for name, content in contents.items():
        assert content in replica[name]


def kill(patch: pytest.MonkeyPatch, when: str) -> None:
    """The next run ends behind its first transaction in Kafka, or before it is concluded; another one settles it."""
    commit = ProducerSession.commit

    def committed(session: ProducerSession) -> None:
        commit(session)
        raise Killed

    def concluded(*_: Any, **__: Any) -> None:
        raise Killed

    if when == "in Kafka":
        patch.setattr(ProducerSession, "commit", committed)
    elif when == "before the end":
        patch.setattr(conclude, "conclude", concluded)
