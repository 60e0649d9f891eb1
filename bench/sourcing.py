"""`source`: a whole source, from a broker over HTTP to concluded records on Kafka, many entities and few.

The steps of a run one after the other, without Airflow between them. Each size is taken once: it shows that a million
entities go through, what each step costs by entity, and how much memory that takes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measures import Measure
from bench.outbox_files import PUBLICATION
from bench.peak_memory import PeakMemory
from bench.senders import Sender, bench_kafka
from bench.sending import MEBIBYTE
from bench.settings import Setting
from bench.source_process import SERVICE, source_broker
from bench.spark_session import spark_session
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.ngsi.connection import BrokerConnection
from contexture.outbox.conclusion import conclude
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import LandingManifest, Manifest, Verdict
from contexture.outbox.orders import StageOrder
from contexture.outbox.storage import Storage
from contexture.publications import Publication, fingerprint
from contexture.sandbox.demo.comparison import compare
from contexture.sandbox.kafka import EmbeddedKafka
from contexture_airflow.steps.sending import topic_counts
from spark_jobs.judgement import judge_outbox
from spark_jobs.preparation.phase import Stopwatch, prepare
from spark_jobs.pull import pull

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = ("pull", "prepare", "judge", "publish", "conclude")


@dataclass(slots=True)
class Taken:
    """What one size took: seconds of each step, and bytes at most of Spark with its workers, and of the sender."""

    seconds: dict[str, float] = field(default_factory=dict)
    stage_bytes: int = 0
    sender_bytes: int = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts the block's seconds under `name`."""
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began


def source(setting: Setting) -> list[Measure]:
    """Every size once, ascending; what was read back from Kafka equals what was prepared, or the bench fails."""
    told = Told("source", "entities")
    return told.measures(told.taken(setting, setting.sizes.source_entities, _taken))


def _taken(setting: Setting, entities: int) -> Taken:
    folder = setting.folder / str(entities)
    setting.tell(f"{entities:,} entities: filling a broker")
    with source_broker(entities) as url:
        run = SourceRun(folder, entities)
        manifest = run.stage(url, setting)
    with bench_kafka(setting) as kafka:
        run.publish(manifest, kafka)
        setting.tell(f"{entities:,} entities: reading back")
        run.check(kafka)
    shutil.rmtree(folder)
    return run.taken


@dataclass(slots=True)
class SourceRun:
    """One full run of a publication of its own folder."""

    folder: Path
    entities: int
    taken: Taken = field(default_factory=Taken)

    def stage(self, url: str, setting: Setting) -> Manifest:
        """Pull, prepare and the checkpoint in a new session of Spark."""
        with spark_session(self.folder) as spark, PeakMemory(_others()) as memory:
            setting.tell(f"{self.entities:,}: pull, prepare, judge")
            manifest = self._staged(spark, url)
        self.taken.stage_bytes = memory.bytes
        return manifest

    def publish(self, manifest: Manifest, kafka: EmbeddedKafka) -> None:
        """Topics, a sender in a process of its own, and the next state."""
        Outboxes(self._storage, PUBLICATION).move(manifest.outbox, "approved", reason="bench")
        sender = Sender(self.folder / "home", kafka)
        with self.taken.step("publish"):
            specs = [TopicSpec(name, 2, 1) for name in topic_counts(self._storage, manifest)]
            ensure_topics(ClientSettings.from_extra(kafka.client_settings()), specs)
            sent = sender.send_outbox(manifest.outbox, f"source-{self.entities}")
        self.taken.sender_bytes = sent.peak_bytes
        with self.taken.step("conclude"):
            conclude(self._storage, manifest, cluster=None, target=None)

    def check(self, kafka: EmbeddedKafka) -> None:
        """Compares what a reader gets with what was prepared."""
        found = compare(self._storage, PUBLICATION, ClientSettings.from_extra(kafka.client_settings()))
        if not found.equal or found.read != self.entities:
            raise RuntimeError(f"{found.read} of {self.entities} records were read back, {found.different} differ")

    def _staged(self, spark: SparkSession, url: str) -> Manifest:
        order = self._order()
        with self.taken.step("pull"):
            landing = self._pulled(spark, order, url)
        with self.taken.step("prepare"):
            manifest = self._prepared(spark, order, landing)
        with self.taken.step("judge"):
            verdict = self._judged(spark, order, landing, manifest)
        if manifest.upserts != self.entities or not verdict.approved:
            raise RuntimeError(f"{manifest.upserts} of {self.entities} were prepared: {verdict.results}")
        return manifest

    def _pulled(self, spark: SparkSession, order: StageOrder, url: str) -> LandingManifest:
        return pull(spark, order, BrokerConnection(url), None)

    def _prepared(self, spark: SparkSession, order: StageOrder, landing: LandingManifest) -> Manifest:
        return prepare(spark, order, landing, Stopwatch())

    def _judged(self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest) -> Verdict:
        return judge_outbox(spark, order, landing, manifest)

    def _publication(self) -> Publication:
        return _publication()

    @property
    def _storage(self) -> Storage:
        return Storage(str(self.folder / "home"))

    def _order(self) -> StageOrder:
        publication = self._publication()
        return StageOrder(
            publication=publication,
            fingerprint=fingerprint(publication),
            home=self._storage.root,
            run="bench",
            mode="full",
            sequence=1,
        )


def _others() -> frozenset[int]:
    """The processes that run already: the broker's and Kafka's."""
    import psutil

    return frozenset(child.pid for child in psutil.Process().children())


@dataclass(frozen=True, slots=True)
class Told:
    """How the figures of several sizes are told.

    Attributes:
        bench: its name.
        noun: what there are many of.
    """

    bench: str
    noun: str

    def taken(self, setting: Setting, sizes: Sequence[int], take: Callable[[Setting, int], Taken]) -> dict[int, Taken]:
        """What each size takes; the smallest one is taken once before, for what is done first in a process."""
        setting.tell("warm-up, not counted")
        take(setting, min(sizes))
        taken: dict[int, Taken] = {}
        for size in sizes:
            taken[size] = take(setting, size)
            shown = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in taken[size].seconds.items())
            setting.tell(f"{size:,} {self.noun}: {shown}")
        return taken

    def measures(self, taken: dict[int, Taken]) -> list[Measure]:
        """A row for each step, and two about memory."""
        few, many = (taken[size] for size in sorted(taken)[-2:])
        stage = "stage (Spark, its workers, its driver)"
        return [
            *(self._step(name, taken) for name in STEPS),
            self._memory(stage, taken, few.stage_bytes, many.stage_bytes),
            self._memory("the sender", taken, few.sender_bytes, many.sender_bytes),
        ]

    def _step(self, name: str, taken: dict[int, Taken]) -> Measure:
        sizes = sorted(taken)
        many = sizes[-1]
        costs = [(_beyond(name, taken, few, more),) for few, more in pairwise(sizes)]
        what = f"{name} of {many:,} {self.noun} ({taken[many].seconds[name]:,.0f} s), each beyond {sizes[-2]:,}"
        return Measure(self.bench, what, "us", costs[-1], costs[-2], f"each between {sizes[-3]:,} and {sizes[-2]:,}")

    def _memory(self, what: str, taken: dict[int, Taken], few_bytes: int, many_bytes: int) -> Measure:
        few, many = sorted(taken)[-2:]
        ours, peer = (many_bytes / MEBIBYTE,), (few_bytes / MEBIBYTE,)
        return Measure(self.bench, f"peak memory of {what}, {many:,} {self.noun}", "MiB", ours, peer, f"with {few:,}")


def _beyond(name: str, taken: dict[int, Taken], few: int, more: int) -> float:
    """Microseconds of one: what more of them cost beyond what few cost, so that fixed costs fall out."""
    return (taken[more].seconds[name] - taken[few].seconds[name]) / (more - few) * 1_000_000


def _publication() -> Publication:
    return Publication.model_validate(
        {
            "name": PUBLICATION,
            "source": {"kind": "ngsi", "connection": "none", "service": SERVICE, "service_path": "/#"},
            "topics": {
                "naming": "cygnus",
                "data_model": "dm-by-service-path",
                "partitions": 2,
                "keep": "latest",
            },
            "message": {"format": "ngsiv2", "key": "identity"},
            "publish": {"shards": 1},
        }
    )
