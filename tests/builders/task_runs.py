"""The steps behind the tasks of one publication, on a real broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from builders.outboxes import NOON, outbox, publication, records
from contexture.kafka import ClientSettings, read_committed
from contexture.publications import Publication
from contexture.sending.target import KafkaTarget, Target
from contexture.storage.archive import Interval
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_sandbox.kafka import EmbeddedKafka

INTERVAL = (NOON, NOON + timedelta(minutes=5))


class City:
    """One publication, its storage and its Kafka; names are its own, for the broker is shared."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, **sections: Any) -> None:
        name = f"cars-{uuid4().hex[:8]}"
        self.storage = Home(str(folder))
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.publication = publication(name=name, **sections)
        self.outboxes = self.storage.publication(name).outboxes
        self.topic = f"topic-{name}"
        self.log: list[str] = []

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(self.settings, owner, interval, self.log.append)

    def prepared(self, sequence: int, *shards: str, interval: Interval | None = None) -> Manifest:
        rows = [records(*names.split(), topic=self.topic) for names in shards]
        mode = "changes" if interval is None else "backfill"
        return outbox(self.storage, self.publication, sequence, rows, mode=mode, interval=interval)

    def staged(self, manifest: Manifest) -> StagedOutbox:
        return StagedOutbox(
            publication=self.publication.name,
            run=manifest.run,
            outbox=manifest.outbox,
            sequence=manifest.sequence,
            records=manifest.records,
            shards=(),
        )

    def judged(self, manifest: Manifest) -> list[int]:
        staged = self.staged(manifest)
        return apply_verdict(
            self.storage.publication(staged.publication),
            staged,
            dry_run=False,
            target_for=self.target,
            report=self.log.append,
        )

    def sent(self, manifest: Manifest, shard: int) -> int:
        target = self.target(self.publication, manifest.interval)
        store = self.storage.publication(manifest.publication)
        attempts = build_shard_attempts(store, manifest.outbox, shard, self.publication, report=self.log.append)
        return send_shard(store, manifest, shard, target, attempts).records_sent

    def concluded(self, manifest: Manifest) -> bool:
        now = datetime.now(UTC)
        return (
            conclude_run(
                self.storage.publication(manifest.publication),
                self.staged(manifest),
                self.target,
                self.log.append,
                now=now,
            )
            is not None
        )

    def ran(self, manifest: Manifest) -> bool:
        for shard in self.judged(manifest):
            self.sent(manifest, shard)
        return self.concluded(manifest)

    def keys(self) -> list[bytes]:
        """Keys in Kafka, sorted."""
        return sorted(record.key or b"" for record in read_committed(self.settings, [self.topic]))
