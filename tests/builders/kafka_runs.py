"""The steps of a publication's runs on a real Kafka, from an outbox that a test has made."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from builders.plain_kafka import remove_topics
from contexture.kafka import ClientSettings
from contexture.publications import Publication
from contexture.sending import Ledger, SenderNames
from contexture.sending.target import KafkaTarget, Target
from contexture.storage.archive import Interval
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_sandbox.kafka import EmbeddedKafka


class Instance:
    """The steps of one publication's runs, and the command line beside them."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path, owner: Publication) -> None:
        self.kafka, self.owner, self.name = kafka, owner, owner.name
        self.storage = Home(str(folder / "home"))
        self.settings = ClientSettings.from_extra(kafka.client_settings())
        self.outboxes = self.storage.publication(owner.name).outboxes

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        """Kafka, for the steps."""
        return KafkaTarget(self.settings, owner, interval)

    def judged(self, manifest: Manifest) -> list[int]:
        """What the gate does; gives the shards to send."""
        return apply_verdict(
            self.storage.publication(manifest.publication),
            _staged(manifest),
            dry_run=False,
            target_for=self.target,
            report=_silent,
        )

    def sent(self, manifest: Manifest, shard: int) -> int:
        """Sends a shard; gives how many records."""
        store = self.storage.publication(manifest.publication)
        attempts = build_shard_attempts(store, manifest.outbox, shard, self.owner)
        return send_shard(store, manifest, shard, self.target(self.owner, None), attempts).records_sent

    def ran(self, manifest: Manifest) -> None:
        """All steps that follow on stage."""
        for shard in self.judged(manifest):
            self.sent(manifest, shard)
        self.concluded(manifest)

    def concluded(self, manifest: Manifest) -> None:
        """What a run does last."""
        conclude_run(
            self.storage.publication(manifest.publication),
            _staged(manifest),
            self.target,
            _silent,
            now=datetime.now(UTC),
        )

    def settled(self) -> None:
        """What a run does first."""
        finish_open_transaction(
            self.storage.publication(self.owner.name), self.owner, RunRequest(run_id=uuid4().hex), self.target, _silent
        )

    def lose_ledger(self) -> None:
        """Removes the ledger's topic."""
        remove_topics(self.kafka.client_settings(), SenderNames(self.name).ledger_topic)

    def rows(self) -> dict[int, tuple[str, int, int]]:
        """Outbox, sequence and position of each shard, as the ledger has them."""
        entries = Ledger(self.settings, SenderNames(self.name)).entries()
        return {shard: (entry.outbox, entry.sequence, entry.position) for shard, entry in entries.items()}


def _staged(manifest: Manifest) -> StagedOutbox:
    return StagedOutbox(
        publication=manifest.publication,
        run=manifest.run,
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        records=manifest.records,
        shards=(),
    )


def _silent(sentence: str) -> None:
    pass
