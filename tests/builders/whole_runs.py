"""Runs of one publication from its broker to Kafka, by the steps of the tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from builders.layout import PublicationPaths
from contexture.java.runtime import find_java
from contexture.kafka import ClientSettings
from contexture.operations.verification.topics import KafkaTopics
from contexture.operations.verification.verify import verify
from contexture.publications import Publication
from contexture.sending.target import KafkaTarget, Target
from contexture.storage.archive import Interval
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import place_order, read_staged_outbox
from contexture_sandbox.kafka import EmbeddedKafka
from spark_jobs import session, stage


class Lasting:
    """One session for several jobs, which they can not stop."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Goes on."""


@contextmanager
def spark_session(folder: Path) -> Iterator[Any]:
    """A session as the stage job starts it, in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**find_java().environment(), "SPARK_LOCAL_IP": "127.0.0.1"}.items():
            patch.setenv(name, value)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        # Spark's process keeps this folder as its own; the tests go on where they were.
        patch.chdir(folder)
        started = session.start_session("whole runs")
    yield started
    started.stop()


class WholeRuns:
    """One publication, its storage and its Kafka; names are its own, for the broker is shared."""

    def __init__(self, home: Path, kafka: EmbeddedKafka) -> None:
        self.storage = Home(str(home))
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.name = f"cars-{uuid4().hex[:8]}"
        self.folder = PublicationPaths(self.name)
        self.topic = f"topic-{self.name}"

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        """Kafka."""
        return KafkaTarget(self.settings, owner, interval)

    def ran(self, owner: Publication, **asked: Any) -> Manifest:
        """One run, task by task."""
        request = RunRequest(run_id=uuid4().hex, **asked)
        plan = finish_open_transaction(self.storage.publication(owner.name), owner, request, self.target, print)
        order = place_order(self.storage.publication(owner.name), owner, request, plan, self.target)
        stage.main(["--order", order.uri])
        staged = read_staged_outbox(self.storage.publication(order.publication), order, None)
        store = self.storage.publication(self.name)
        manifest = store.outboxes.manifest(staged.outbox)
        for shard in apply_verdict(
            self.storage.publication(staged.publication), staged, dry_run=False, target_for=self.target, report=print
        ):
            attempts = build_shard_attempts(store, manifest.outbox, shard, owner, report=print)
            send_shard(
                self.storage.publication(manifest.publication),
                manifest,
                shard,
                self.target(owner, manifest.interval),
                attempts,
            )
        assert (
            conclude_run(
                self.storage.publication(staged.publication), staged, self.target, print, now=datetime.now(UTC)
            )
            is not None
        )
        return manifest

    def verified(self, owner: Publication) -> tuple[bool, dict[str, int]]:
        """Whether the topics are what was sent, and how that was compared."""
        found = verify(self.storage.publication(owner.name), owner, KafkaTopics(self.settings, owner))
        return found.is_equal, dict(found.compared)

    def forget_outboxes(self) -> None:
        """As after their time in the archive."""
        self.storage.remove(self.folder.outboxes())
