"""Kafka as the target of one publication: topics, claims, senders, and what its ledger proves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from typing import Final, Protocol, TypedDict, Unpack

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings, ensure_topics
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.interfaces import OpenProducer
from contexture.kafka.topic_identities import topic_ids
from contexture.publications import Publication
from contexture.sending import (
    AfterFailure,
    Claims,
    Ledger,
    LedgerEntry,
    Publisher,
    SenderNames,
    ShardReader,
    ShardResult,
    for_structures,
)
from contexture.sending.choices import encode_of
from contexture.sending.context import Encode
from contexture.sending.interfaces import HiddenPort, LedgerPort
from contexture.sending.ledger import LedgerStatus
from contexture.sending.ledger_copies import LedgerCopies
from contexture.sending.open_transactions import OpenTransactions
from contexture.sending.resume import ExpectedRow
from contexture.sending.size_limits import check_records, dead_letter_spec, dead_letters_of, size_limits, topic_spec
from contexture.storage.archive import Interval
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest

_CALL_SECONDS: Final = 2.0
_NO_TOPIC: Final = "__consumer_offsets"


def cluster_id(settings: ClientSettings, broker_wait: BrokerWait) -> str:
    """Returns the id that the cluster gave itself when it was made.

    Raises:
        RetriableError: no broker answers, or the brokers have no id.
        KafkaConfigurationError: the brokers refuse this user.
    """
    watch = ClientCallbacks()
    client = admin(settings, watch)
    while True:
        try:
            found = client.list_topics(topic=_NO_TOPIC, timeout=_CALL_SECONDS).cluster_id
        except client_error() as failure:
            watch.raise_refusal("reaching the brokers")
            broker_wait.check(watch.last_error(error_in(failure)))
        else:
            break
    if not found:
        raise RetriableError(
            "the Kafka brokers do not report their cluster id", next_step="use brokers of version 2.8 or later"
        )
    return str(found)


@dataclass(frozen=True, slots=True)
class SendRequest:
    """One send of a shard.

    Attributes:
        reader: the shard.
        shards: how many the outbox has.
        after_failure: milliseconds to wait after a failure, as of `Publisher.publish`.
        committed: receives each committed transaction.
        skipped: receives how many transactions are in Kafka before anything is sent.
        bytes: of keys and values of the shard, before compression.
        row: what is known of the ledger's row of the shard.
    """

    reader: ShardReader
    shards: int
    after_failure: AfterFailure
    committed: Callable[[LedgerEntry], None] = lambda entry: None
    skipped: Callable[[int], None] = lambda transactions: None
    bytes: int = 0
    row: ExpectedRow = ExpectedRow.NONE


class Target(Protocol):
    """Where a publication's records go."""

    def cluster(self) -> str | None:
        """Returns the id of the Kafka cluster."""

    def names(self) -> SenderNames:
        """Returns the names of its senders and its ledger."""

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""

    def settings_shown(self) -> Mapping[str, str]:
        """Returns the options of its connection, without secrets."""

    def highest_sequence(self) -> int:
        """Returns the highest sequence that was ever sent or claimed; 0 for none."""

    def ledger_status(self) -> LedgerStatus:
        """Returns what there is of the ledger."""

    def ledger_id(self) -> str | None:
        """Kafka's own id of the ledger's topic; None when it is not there."""

    def ledger_policy(self) -> str | None:
        """The `cleanup.policy` of the ledger's topic; None when it is not there, or this user may not see it."""

    def ledger_copies(self) -> LedgerCopies | None:
        """Returns how many replicas the ledger has and needs; None when it is not there."""

    def prepare_ledger(self, shards: int) -> None:
        """The ledger has room for so many shards when this returns."""

    def sent_log_position(self) -> int | None:
        """Returns the registry transaction up to which the ledger has the log as sent; None where it has none."""

    def progress(self, shard: int) -> LedgerEntry | None:
        """How far a shard got, once everything before this call is settled."""

    def ensure_topics(self, topics: Iterable[str]) -> None:
        """Every topic exists when this returns."""

    def check_sizes(self, reader: ShardReader, topics: Collection[str], size: int) -> None:
        """Checks that the values of a shard pass the client, their topics and the brokers.

        Args:
            reader: the shard.
            topics: that its records go to; they exist.
            size: bytes of all its keys and values.

        Raises:
            ConfigurationError: one is above a limit.
        """

    def topic_ids(self, topics: Iterable[str], *, all_exist: bool = False) -> dict[str, str]:
        """Kafka's own ids of topics, without those that do not exist; `HIDDEN` for those that may not be seen.

        Args:
            topics: their names.
            all_exist: every topic was made or found a moment ago, so brokers that do not know one yet are behind.
        """

    def claim(self, manifest: Manifest, *, clears: Collection[str] | None = None) -> bool:
        """Fences the senders of earlier outboxes in the shards that this one does not use; False for a later one.

        Args:
            manifest: of the outbox.
            clears: names of topics: all shards are claimed before any of them is sent, and what their senders left
                undecided in these topics is aborted.
        """

    def set_log_start(self, manifest: Manifest, transaction: int) -> int:
        """Records that no instance sends a registry's log up to a transaction; returns the ledger's sent position."""

    def send(self, sending: SendRequest) -> ShardResult:
        """Sends what is not yet sent of a shard; raises as `Publisher.publish`."""


TargetFor = Callable[[Publication, Interval | None], Target]
"""Opens the target of a publication, for a backfilled interval or for normal runs."""

_SHOWN_DRIFT: Final = 20


class PublisherParts(TypedDict, total=False):
    """Parts of a publisher that a test replaces."""

    ledger: LedgerPort
    hidden: HiddenPort
    open_producer: OpenProducer


class KafkaTarget:
    """The target of one publication; for a backfilled interval with senders and a ledger of its own."""

    def __init__(
        self,
        settings: ClientSettings,
        publication: Publication,
        interval: Interval | None = None,
        report: ProgressCallback = lambda sentence: None,
    ) -> None:
        self._settings = settings
        self._publication = publication
        self._is_backfill = interval is not None
        self._is_registry = publication.source.has_log
        self._names = sender_names(publication, interval)
        self._wait_seconds = float(publication.publish.broker_wait_seconds)
        self._report = report

    @cached_property
    def _cluster(self) -> str:
        return cluster_id(self._settings, self._broker_wait())

    def cluster(self) -> str | None:
        return self._cluster

    def names(self) -> SenderNames:
        """Those of its publication, or of the backfilled interval."""
        return self._names

    def identity(self) -> str:
        """Which cluster as whom, without secrets."""
        return self._settings.identity()

    def settings_shown(self) -> Mapping[str, str]:
        """Returns the options of its connection, without secrets."""
        return self._settings.shown()

    def highest_sequence(self) -> int:
        return self._ledger().highest_sequence()

    def ledger_status(self) -> LedgerStatus:
        """Returns it as the brokers report it."""
        return self._ledger().status()

    def ledger_id(self) -> str | None:
        """Returns it as the brokers report it."""
        return self._ledger().topic_id()

    def ledger_policy(self) -> str | None:
        """Returns it as the brokers report it."""
        return self._ledger().policy()

    def ledger_copies(self) -> LedgerCopies | None:
        """Returns it as the brokers report it."""
        return self._ledger().copies()

    def prepare_ledger(self, shards: int) -> None:
        """Makes it, or gives it more partitions, where needed."""
        self._ledger().prepare(shards)

    def sent_log_position(self) -> int | None:
        """As the last visible row of the ledger's only shard says; there need be no ledger yet."""
        entry = self._ledger().entries().get(0)
        return None if entry is None else entry.source_transaction

    def progress(self, shard: int) -> LedgerEntry | None:
        """Returns the shard's row of the ledger; None too where nothing was ever sent, so that there is no ledger."""
        ledger = self._ledger()
        return ledger.read_committed(shard) if shard < ledger.partitions() else None

    def ensure_topics(self, topics: Iterable[str]) -> None:
        """Makes what is missing, as the publication wants it; reports differences in what is there."""
        specs = [topic_spec(self._publication, topic) for topic in topics]
        # What cannot be encoded is known before anything is approved.
        self._encode  # noqa: B018 - finds the entry points
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
            self._report(f"{len(found.created)} topics created, {found.existing} existed")
        for drift in found.drift[:_SHOWN_DRIFT]:
            self._report(f"left as it is: {drift}")

    def check_sizes(self, reader: ShardReader, topics: Collection[str], size: int) -> None:
        """Compares them with the connection and the brokers' answers; reads them only where one may be above."""
        limits = size_limits(self._client_settings(size), sorted(topics), {}, wait_seconds=self._wait_seconds)
        if limits.exceeded(size, lambda: size, sorted(topics)):
            check_records(reader, limits)

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
        # Not only where something was claimed now: a gate may be killed between the claim and its end.
        if clears and not claimed.superseded and not claimed.is_sent_in_part:
            aside = self._publication.dead_letter_topic
            claims.clear({*clears, aside} if aside else clears, OpenTransactions(self._settings, self._broker_wait()))
        return not claimed.superseded

    def set_log_start(self, manifest: Manifest, transaction: int) -> int:
        """Writes it into the ledger, unless another instance has begun."""
        return self._claims().set_log_start(manifest.outbox, manifest.sequence, transaction)

    def _claims(self) -> Claims:
        return Claims(self._settings, self._names, self._ledger(), broker_wait=self._broker_wait())

    def send(self, sending: SendRequest) -> ShardResult:
        """Sends by the transactional protocol of `contexture.kafka`."""
        return self._publisher(sending).publish(
            sending.reader,
            attempts=sending.after_failure,
            committed=sending.committed,
            skipped=sending.skipped,
            row=sending.row,
        )

    def _publisher(self, sending: SendRequest, **options: Unpack[PublisherParts]) -> Publisher:
        return Publisher(
            self._client_settings(sending.bytes),
            self._names,
            shards=sending.shards,
            broker_wait_seconds=self._wait_seconds,
            progress=lambda progress: self._report(f"shard {progress.shard}: {progress.detail}"),
            dead_letters=dead_letters_of(self._publication),
            encode=self._encode,
            **options,
        )

    def _client_settings(self, shard_bytes: int) -> ClientSettings:
        # A registry transaction is one of Kafka, so a shard's bytes are the most that one can have.
        return for_structures(self._settings, shard_bytes) if self._is_registry else self._settings

    @cached_property
    def _encode(self) -> Encode | None:
        return encode_of(self._publication, self._settings)

    def _ledger(self) -> Ledger:
        return Ledger(self._settings, self._names, broker_wait=self._broker_wait())

    def _broker_wait(self) -> BrokerWait:
        return BrokerWait(self._wait_seconds, self._report)


def sender_names(publication: Publication, interval: Interval | None) -> SenderNames:
    """Returns what the senders of a publication are called, those of a backfilled interval by its start."""
    start = None if interval is None else interval[0].astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return SenderNames(publication.name, publication.publish.transactional_id_prefix, start)
