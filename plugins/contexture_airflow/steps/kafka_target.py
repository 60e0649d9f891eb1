"""Kafka as the target of one publication."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from functools import cached_property
from typing import Any, Final

from contexture.kafka import ClientSettings, ensure_topics
from contexture.kafka.patience import Patience
from contexture.kafka.topic_identities import topic_ids
from contexture.publications import Publication
from contexture.sending import (
    Claims,
    Ledger,
    LedgerEntry,
    Publisher,
    SenderNames,
    SendProgress,
    ShardResult,
    for_structures,
    timed_by_sending,
)
from contexture.sending.hidden import HiddenRecords
from contexture.sending.ledger import LedgerStanding
from contexture.sending.ledger_copies import LedgerCopies
from contexture.sending.topic_specs import dead_letter_spec, dead_letters_of, topic_spec
from contexture.storage.manifests import Manifest
from contexture_airflow.steps.cluster import cluster_id
from contexture_airflow.steps.run import Interval
from contexture_airflow.steps.target import Report, Sending

_SHOWN_DRIFT: Final = 20


class KafkaTarget:
    """The target of one publication; for a backfilled interval with senders and a ledger of its own.

    Args:
        settings: the connection.
        publication: whose records.
        interval: the interval of a backfill; None for normal runs.
        report: gets a sentence now and then while something takes long.
    """

    def __init__(
        self,
        settings: ClientSettings,
        publication: Publication,
        interval: Interval | None = None,
        report: Report = lambda sentence: None,
    ) -> None:
        self._settings = settings
        self._publication = publication
        self._is_backfill = interval is not None
        self._is_registry = publication.source.kind == "sdmx"
        self._names = sender_names(publication, interval)
        self._wait_seconds = float(publication.publish.broker_wait_seconds)
        self._report = report

    @cached_property
    def _cluster(self) -> str:
        return cluster_id(self._settings, self._patience())

    def cluster(self) -> str | None:
        """The id of the Kafka cluster."""
        return self._cluster

    def names(self) -> SenderNames:
        """Those of its publication, or of the backfilled interval."""
        return self._names

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""
        return self._settings.identity()

    def settings_shown(self) -> Mapping[str, str]:
        """The options of its connection, without secrets."""
        return self._settings.shown()

    def highest_sequence(self) -> int:
        """The highest sequence in the ledger."""
        return self._ledger().highest_sequence()

    def ledger_standing(self) -> LedgerStanding:
        """As the brokers say."""
        return self._ledger().standing()

    def ledger_id(self) -> str | None:
        """As the brokers say."""
        return self._ledger().topic_id()

    def ledger_policy(self) -> str | None:
        """As the brokers say."""
        return self._ledger().policy()

    def ledger_copies(self) -> LedgerCopies | None:
        """As the brokers say."""
        return self._ledger().copies()

    def prepare_ledger(self, shards: int) -> None:
        """Makes it, or gives it more partitions, where needed."""
        self._ledger().prepare(shards)

    def log_told(self) -> int | None:
        """As the last visible row of the ledger's only shard says; there need be no ledger yet."""
        entry = self._ledger().entries().get(0)
        return None if entry is None else entry.source_transaction

    def progress(self, shard: int) -> LedgerEntry | None:
        """The shard's row of the ledger; None too where nothing was ever sent, so that there is no ledger."""
        ledger = self._ledger()
        return ledger.settled(shard) if shard < ledger.partitions() else None

    def ensure_topics(self, topics: Iterable[str]) -> None:
        """Makes what is missing, as the publication wants it; tells of differences in what is there."""
        specs = [topic_spec(self._publication, topic) for topic in topics]
        if specs:
            specs.extend(filter(None, [dead_letter_spec(self._publication)]))
        found = ensure_topics(
            self._settings,
            specs,
            max_new_topics=self._publication.topics.max_new_topics,
            max_broker_partitions=self._publication.topics.max_broker_partitions,
            progress=self._report,
            wait_seconds=self._wait_seconds,
        )
        if found.created:
            self._report(f"{len(found.created)} topics made, {found.existing} were there")
        for drift in found.drift[:_SHOWN_DRIFT]:
            self._report(f"left as it is: {drift}")

    def topic_ids(self, topics: Iterable[str], *, all_exist: bool = False) -> dict[str, str]:
        """As the brokers say, in one request."""
        return topic_ids(
            self._settings, topics, all_exist=all_exist, wait_seconds=self._wait_seconds, progress=self._report
        )

    def claim(self, manifest: Manifest, *, clears: Collection[str] | None = None) -> bool:
        """Fences and marks every shard that the outbox does not use, or all; backfills do not supersede each other.

        Nor do runs of a registry publication: it has one shard, and instances that share nothing but Kafka would fence
        each other with every run that has nothing to send.
        """
        if self._is_backfill or self._is_registry:
            return True
        used = {shard.shard for shard in manifest.shards if shard.records} if clears is None else set()
        claims = self._claims()
        claimed = claims.claim(manifest.outbox, manifest.sequence, shards=len(manifest.shards), used=used)
        if clears and claimed.claimed and not claimed.superseded:
            aside = self._publication.dead_letter_topic
            claims.clear({*clears, aside} if aside else clears, HiddenRecords(self._settings, self._patience()))
        return not claimed.superseded

    def begin_log(self, manifest: Manifest, transaction: int) -> int:
        """Writes it into the ledger, unless another instance has begun."""
        return self._claims().begin_log(manifest.outbox, manifest.sequence, transaction)

    def _claims(self) -> Claims:
        return Claims(self._settings, self._names, self._ledger(), patience=self._patience())

    def send(self, sending: Sending) -> ShardResult:
        """Sends by the transactional protocol of `contexture.kafka`."""
        return self._publisher(sending).publish(
            sending.reader,
            attempts=sending.after_failure,
            committed=sending.committed,
            skipped=sending.skipped,
            row=sending.row,
        )

    def _publisher(self, sending: Sending, **options: Any) -> Publisher:
        # A registry transaction is one of Kafka, so a shard's bytes are the most that one can have.
        return Publisher(
            for_structures(self._settings, sending.bytes) if self._is_registry else self._settings,
            self._names,
            shards=sending.shards,
            broker_wait_seconds=self._wait_seconds,
            progress=self._tell,
            dead_letters=dead_letters_of(self._publication),
            # Kafka removes a history's records by their own time: that of a change may be older than the retention.
            encode=timed_by_sending if self._publication.topics.keep == "history" else None,
            **options,
        )

    def _tell(self, progress: SendProgress) -> None:
        self._report(f"shard {progress.shard}: {progress.detail}")

    def _ledger(self) -> Ledger:
        return Ledger(self._settings, self._names, patience=self._patience())

    def _patience(self) -> Patience:
        return Patience(self._wait_seconds, self._report)


def sender_names(publication: Publication, interval: Interval | None) -> SenderNames:
    """What the senders of a publication are called, those of a backfilled interval by its start."""
    start = None if interval is None else interval[0].astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return SenderNames(publication.name, publication.publish.transactional_id_prefix, start)
