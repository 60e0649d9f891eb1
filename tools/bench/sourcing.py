"""`source`: a whole source, from a broker over HTTP to concluded records on Kafka, many entities and few.

The steps of a run one after the other, without Airflow between them. Each size is taken once: it shows that a million
entities go through, what each step costs by entity, and how much memory that takes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.publications import Publication, fingerprint
from contexture.sources.http.connection import BrokerConnection
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture_sandbox.demo.comparison import compare
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.prepare import prepare
from spark_jobs.entities.read import read_entities
from spark_jobs.shared.outbox import Stopwatch
from tools.bench.cars import cars_publication
from tools.bench.measures import Measure
from tools.bench.outbox_files import PUBLICATION
from tools.bench.peak_memory import PeakMemory
from tools.bench.senders import Sender, bench_kafka
from tools.bench.settings import Setting
from tools.bench.source_process import SERVICE, source_broker
from tools.bench.spark_session import spark_session
from tools.bench.steps import StepReport, Taken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def source(setting: Setting) -> list[Measure]:
    """Every size once, ascending; what was read back from Kafka equals what was prepared, or the bench fails."""
    report = StepReport("source", "entities")
    return report.measures(report.taken(setting, setting.sizes.source_entities, _taken))


def _taken(setting: Setting, entities: int) -> Taken:
    folder = setting.folder / str(entities)
    setting.progress(f"{entities:,} entities: filling a broker")
    with source_broker(entities) as url:
        run = SourceRun(folder, entities)
        manifest = run.stage(url, setting)
    with bench_kafka(setting) as kafka:
        run.publish(manifest, kafka)
        setting.progress(f"{entities:,} entities: reading back")
        run.check(kafka)
    shutil.rmtree(folder)
    return run.taken


@dataclass(slots=True)
class SourceRun:
    """One full run of a publication of its own folder."""

    folder: Path
    entities: int
    taken: Taken = field(default_factory=Taken)

    @property
    def home(self) -> str:
        """The address of its files."""
        return str(self.folder / "home")

    @property
    def sender_name(self) -> str:
        """What Kafka knows its sender by."""
        return f"source-{self.entities}"

    def stage(self, url: str, setting: Setting) -> Manifest:
        """Pull, prepare and the checkpoint in a new session of Spark."""
        with spark_session(self.folder) as spark, PeakMemory(_others()) as memory:
            setting.progress(f"{self.entities:,}: pull, prepare, judge")
            manifest = self._staged(spark, url)
        self.taken.stage_bytes = memory.bytes
        return manifest

    def publish(self, manifest: Manifest, kafka: EmbeddedKafka) -> None:
        """Topics, a sender in a process of its own, and the next state."""
        self._storage.publication(PUBLICATION).outboxes.set_status(manifest.outbox, "approved", reason="bench")
        sender = Sender(self.home, kafka)
        with self.taken.step("publish"):
            specs = [
                TopicSpec(name, 2, 1)
                for name in self._storage.publication(manifest.publication).outbox(manifest.outbox).topic_counts()
            ]
            ensure_topics(ClientSettings.from_extra(kafka.client_settings()), specs)
            sent = sender.send_outbox(manifest.outbox, self.sender_name)
        self.taken.sender_bytes = sent.peak_bytes
        with self.taken.step("conclude"):
            conclude(self._storage.publication(manifest.publication), manifest, cluster=None, target=None)

    def check(self, kafka: EmbeddedKafka) -> None:
        """Compares what a reader gets with what was prepared."""
        found = compare(self._storage, PUBLICATION, kafka.client_settings())
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
        return read_entities(spark, order, BrokerConnection(url), None)

    def _prepared(self, spark: SparkSession, order: StageOrder, landing: LandingManifest) -> Manifest:
        return prepare(spark, order, landing, Stopwatch())

    def _judged(
        self, spark: SparkSession, order: StageOrder, landing: LandingManifest, manifest: Manifest
    ) -> QualityVerdict:
        return judge_outbox(spark, order, landing, manifest)

    def _publication(self) -> Publication:
        source = {"service": SERVICE, "service_path": "/#"}
        return cars_publication(name=PUBLICATION, source=source, publish={"shards": 1})

    @property
    def _storage(self) -> Home:
        return Home(self.home)

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
