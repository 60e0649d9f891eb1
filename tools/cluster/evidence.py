"""What shows that the cluster did the work, and that the result is right."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contexture_sandbox.demo.comparison import Comparison, compare
from contexture_sandbox.demo.scenario import PUBLICATIONS

if TYPE_CHECKING:
    from tools.cluster.platform import ClusterPlatform
    from tools.cluster.scenario import ClusterScenario

KILLED = ("spark executor", "kafka broker", "celery worker")


@dataclass(frozen=True, slots=True)
class Kill:
    """What was killed: its kind, which one, and in the middle of what."""

    kind: str
    part: str
    moment: str


@dataclass(frozen=True, slots=True)
class Copies:
    """Of all topics of Kafka: how many there are, the fewest copies of a partition, and what a write waits for."""

    topics: int
    fewest: int
    awaited: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The outcome of a run on the cluster.

    Attributes:
        kills: in order.
        runs: state of each run that was waited for, by DAG and number.
        celery_tasks: how many tasks each Celery worker did.
        spark_workers: how many were alive at the end.
        applications: the applications that Spark's master has finished.
        executors: how many executors each application had, one after the other.
        objects: files of the home on the object store, by publication.
        copies: of Kafka's topics.
        comparisons: what is in Kafka against what was prepared, by publication.
        memory_mib: what the parts took at the end.
        seconds: of the whole.
    """

    kills: tuple[Kill, ...]
    runs: Mapping[str, str]
    celery_tasks: Mapping[str, int]
    spark_workers: int
    applications: tuple[str, ...]
    executors: Mapping[str, int]
    objects: Mapping[str, int]
    copies: Copies
    comparisons: Mapping[str, Comparison]
    memory_mib: Mapping[str, float]
    seconds: float

    def problems(self) -> list[str]:
        """What is not as it should be, in sentences; none when all is right."""
        found = [f"{run} ended as {state}" for run, state in self.runs.items() if state != "success"]
        if tuple(kill.kind for kill in self.kills) != KILLED:
            found.append(f"not everything was killed in mid-run: {[kill.kind for kill in self.kills]}")
        idle = [name for name, tasks in self.celery_tasks.items() if not tasks]
        found += [f"the Celery worker {name} did no task" for name in idle]
        if len(self.celery_tasks) < 2:
            found.append("there were no two Celery workers")
        if self.spark_workers < 2:
            found.append(f"{self.spark_workers} Spark workers are alive")
        if max(self.executors.values(), default=0) < 3:
            found.append("no application got a new executor for the one that was killed")
        found += [f"{name} has no files on the object store" for name in PUBLICATIONS if not self.objects.get(name)]
        if (self.copies.fewest, self.copies.awaited) != (3, 2):
            found.append(f"topics have {self.copies.fewest} copies, and a write waits for {self.copies.awaited}")
        found += [
            f"{name} in Kafka is not what was prepared" for name, each in self.comparisons.items() if not each.equal
        ]
        found += [f"nothing of {name} was sent" for name, each in self.comparisons.items() if not each.prepared]
        return found


def gathered(scenario: ClusterScenario, memory_mib: Mapping[str, float], seconds: float) -> Evidence:
    """Reads everything back."""
    from contexture.storage.home import Home

    platform = scenario.platform
    spark = platform.spark.master_status()
    with variables(platform.store.variables):
        storage, settings = Home(platform.store.home), platform.kafka_settings()
        comparisons = {name: compare(storage, name, settings.admin()) for name in PUBLICATIONS}
        objects = {name: _objects(storage, name) for name in PUBLICATIONS}
    return Evidence(
        kills=tuple(scenario.kills),
        runs={f"{number}. {run.dag_id}": run.state for number, run in enumerate(scenario.runs, start=1)},
        celery_tasks=platform.workers.done(),
        spark_workers=sum(worker["state"] == "ALIVE" for worker in spark["workers"]),
        applications=tuple(str(application["name"]) for application in spark["completedapps"]),
        executors=platform.spark.started_executors(),
        objects=objects,
        copies=_copies(platform),
        comparisons=comparisons,
        memory_mib=memory_mib,
        seconds=seconds,
    )


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Within the block this process has these variables too."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _objects(storage: object, publication: str) -> int:
    from pyarrow import fs

    found = storage.filesystem.get_file_info(fs.FileSelector(storage.path(publication), recursive=True))  # type: ignore[attr-defined]
    return sum(each.type == fs.FileType.File for each in found)


def _copies(platform: ClusterPlatform) -> Copies:
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient(platform.kafka_settings().admin())
    topics = admin.list_topics(timeout=30).topics
    ledger = ConfigResource(ResourceType.TOPIC, "contexture.ledger.city")
    config = next(iter(admin.describe_configs([ledger]).values())).result(timeout=30)
    fewest = min(len(partition.replicas) for topic in topics.values() for partition in topic.partitions.values())
    return Copies(len(topics), fewest, int(config["min.insync.replicas"].value))
