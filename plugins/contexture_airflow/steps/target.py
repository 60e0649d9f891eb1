"""What the tasks ask of Kafka for one publication, and the Kafka behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC
from typing import Protocol

from contexture.kafka import (
    ClientSettings,
    Ledger,
    LedgerEntry,
    Publisher,
    SenderNames,
    SendProgress,
    ShardReader,
    ShardResult,
    TopicSpec,
    ensure_topics,
    test_connection,
)
from contexture.outbox.manifest import Manifest
from contexture.publications import Publication
from contexture_airflow.steps.run import Interval

Report = Callable[[str], None]


class Target(Protocol):
    """Where a publication's records go."""

    def cluster(self) -> str | None:
        """The id of the Kafka cluster."""
        ...

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""
        ...

    def highest_sequence(self) -> int:
        """The highest sequence that was ever sent or claimed; 0 for none."""
        ...

    def progress(self, shard: int) -> LedgerEntry | None:
        """How far a shard got, once everything before this call is settled."""
        ...

    def ensure_topics(self, topics: Iterable[str], report: Report) -> None:
        """Every topic exists when this returns."""
        ...

    def claim(self, manifest: Manifest) -> None:
        """From now on no earlier outbox is sent in any shard, and no earlier sender lives."""
        ...

    def send(self, reader: ShardReader, shards: int, attempts: Iterable[int], report: Report) -> ShardResult:
        """Sends what is not yet sent of a shard."""
        ...


TargetFor = Callable[[Publication, Interval | None], Target]


class KafkaTarget:
    """The target of one publication; for a backfilled interval with senders and a ledger of its own.

    Args:
        settings: the connection.
        publication: whose records.
        interval: the interval of a backfill; None for normal runs.
    """

    def __init__(self, settings: ClientSettings, publication: Publication, interval: Interval | None = None) -> None:
        self._settings = settings
        self._publication = publication
        self._names = sender_names(publication, interval)

    def cluster(self) -> str | None:
        """The id of the Kafka cluster."""
        return test_connection(self._settings).cluster_id

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""
        return self._settings.identity()

    def highest_sequence(self) -> int:
        """The highest sequence in the ledger."""
        return self._ledger().highest_sequence()

    def progress(self, shard: int) -> LedgerEntry | None:
        """The shard's row of the ledger."""
        return self._ledger().settled(shard)

    def ensure_topics(self, topics: Iterable[str], report: Report) -> None:
        """Makes what is missing, as the publication wants it; tells of differences in what is there."""
        wanted = self._publication.topics
        specs = [
            TopicSpec(
                name=topic,
                partitions=wanted.partitions,
                replication_factor=wanted.replication_factor,
                config=wanted.config,
                keep=wanted.keep,
            )
            for topic in topics
        ]
        found = ensure_topics(self._settings, specs, max_new_topics=wanted.max_new_topics, progress=report)
        report(f"{len(found.created)} topics made, {found.existing} were there")
        for drift in found.drift[:20]:
            report(f"left as it is: {drift}")

    def claim(self, manifest: Manifest) -> None:
        """Writes the sequence to every partition of the ledger that the outbox's own shards do not use."""
        used = [shard.shard for shard in manifest.shards if shard.records]
        self._ledger().claim(outbox=manifest.outbox, sequence=manifest.sequence, used=used)

    def send(self, reader: ShardReader, shards: int, attempts: Iterable[int], report: Report) -> ShardResult:
        """Sends by the transactional protocol of `contexture.kafka`."""

        def tell(progress: SendProgress) -> None:
            report(f"shard {progress.shard}: {progress.detail}")

        publisher = Publisher(
            self._settings,
            self._names,
            shards=shards,
            broker_wait_seconds=float(self._publication.publish.broker_wait_seconds),
            progress=tell,
        )
        return publisher.publish(reader, attempts=attempts)

    def _ledger(self) -> Ledger:
        return Ledger(self._settings, self._names)


def sender_names(publication: Publication, interval: Interval | None) -> SenderNames:
    """What the senders of a publication are called, those of a backfilled interval by its start."""
    start = None if interval is None else interval[0].astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return SenderNames(publication.name, publication.publish.transactional_id_prefix, start)
