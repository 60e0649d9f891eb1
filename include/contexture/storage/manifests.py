"""The documents that say a phase is complete: of a landing, of an outbox, of a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from contexture.storage.documents import StoredDocument, Versioned
from contexture.storage.schemas import FORMAT_VERSION

Mode = Literal["changes", "full", "notifications", "backfill"]


class LandingManifest(Versioned):
    """How one pull went.

    `complete`: the walk ended normally between two healthy probes, and identities are known well enough to show
    absence. `watermark_to`: the greatest modification time the broker showed, as it wrote it. `notified`: rows that
    come from the inbox; in mode `notifications` there are no others, and in mode `backfill` they are the history of the
    source. `retried`: the outbox whose quarantined events these are, where the source was not read.
    `registry_transaction`: the newest transaction of the registry's log that the landing includes; None without a log.
    `missing`: what of a backfill's interval is not here, a sentence each; `skipped_transactions`: transactions whose
    rows are not complete.
    """

    format: int = 1
    run: str
    mode: Mode
    source: str
    queries: tuple[str, ...]
    watermark_from: str | None
    watermark_to: str | None
    rows: int
    present: int
    source_count: int
    complete: bool
    started_at: datetime
    finished_at: datetime
    broker_time: datetime | None
    files: Mapping[str, str]
    digest: str
    retried: str | None = None
    notified: int = 0
    registry_transaction: int | None = None
    missing: tuple[str, ...] = ()
    skipped_transactions: tuple[int, ...] = ()

    @property
    def knows_source(self) -> bool:
        """Whether the source was asked how much it holds."""
        return self.retried is None and self.mode not in {"notifications", "backfill"}


class RegistryPart(StoredDocument):
    """Which registry transaction one Kafka transaction of a shard carries.

    A registry transaction is at most two of them: its additions and modifications, then its `deletions`.

    Attributes:
        transaction: number of the Kafka transaction in the shard, from 0.
        first_position: position of its first record.
        id: the registry's own number of the transaction.
        deletions: whether it holds tombstones; it holds no values then.
        at: when the registry made the transaction, if it says so.
    """

    transaction: int
    first_position: int
    id: int
    deletions: bool
    at: datetime | None = None

    @property
    def place(self) -> tuple[int, bool]:
        """Its place among all that a registry publication ever sends: greater is later."""
        return self.id, self.deletions


class ShardManifest(StoredDocument):
    """One shard of an outbox; `sha256` is of its Parquet file.

    `registry`: the registry transactions of the Kafka transactions, one for each and in their order; empty where the
    source is no registry, or one that numbers no transactions.
    """

    shard: int
    records: int
    bytes: int
    transactions: int
    file: str | None
    sha256: str | None
    registry: tuple[RegistryPart, ...] = ()


class Manifest(Versioned):
    """What an outbox holds. Nothing in it depends on the clock: preparing again gives the same document.

    `accepted`, `quarantined` and `warnings` count the newest version of what was read, and `repeated` the accepted
    versions that a newer one supersedes; `read` counts all.
    `of_snapshot`: how often the snapshot breaks each rule about the whole of it that is an error here.
    `collisions`: events whose topic is that of another identity, refused or not. `retried`: the outbox whose
    quarantined events were tried again; `skipped_newer`: those left out because the target holds something newer.
    `replayed_from`: what a backfill was made of; `missing`: what of its interval is not among it, a sentence each;
    `topic_prefix`: what precedes the names of the publication's topics; `sends_outdated`: nothing was left
    out for something newer.
    `flush`: all that a registry holds, sent whole whatever was sent before. `baseline`: what a registry holds becomes
    state and nothing is sent. `transcoded`: accepted structures that were converted.
    """

    FORMAT: ClassVar[int] = FORMAT_VERSION
    FORMAT_MEMBER: ClassVar[str] = "format_version"

    format_version: int = FORMAT_VERSION
    outbox: str
    publication: str
    fingerprint: str
    sequence: int
    mode: Mode
    run: str
    landing_digest: str
    received_from: datetime | None
    received_to: datetime | None
    state_generation: int
    watermark: str | None
    headers: tuple[tuple[str, str], ...] = ()
    shards: tuple[ShardManifest, ...]
    topics: int
    read: int
    present: int
    source_count: int
    accepted: int
    unchanged: int
    quarantined: Mapping[str, int]
    quarantined_entities: int
    warnings: Mapping[str, int]
    repeated: int
    upserts: int
    deletes: int
    absent: int
    collisions: int = 0
    replayed: int = 0
    skipped_newer: int = 0
    interval: tuple[datetime, datetime] | None = None
    retried: str | None = None
    of_snapshot: Mapping[str, int] = {}
    flush: bool = False
    baseline: bool = False
    replayed_from: Literal["archive", "source"] | None = None
    missing: tuple[str, ...] = ()
    topic_prefix: str = ""
    sends_outdated: bool = False
    transcoded: int = 0

    @property
    def records(self) -> int:
        return sum(shard.records for shard in self.shards)

    @property
    def transactions(self) -> int:
        return sum(shard.transactions for shard in self.shards)


class ExpectationResult(StoredDocument):
    """One judged expectation; `observed` is a short text fit for a page."""

    name: str
    severity: Literal["critical", "warning", "info"]
    success: bool
    on: str
    description: str
    observed: str
    raised: str | None = None


class QualityVerdict(Versioned):
    """The checkpoint's result. `approved`: no critical expectation failed."""

    format: int = 1
    outbox: str
    approved: bool
    results: tuple[ExpectationResult, ...]

    @property
    def failures(self) -> tuple[ExpectationResult, ...]:
        """The expectations that failed, the critical ones first."""
        failed = (result for result in self.results if not result.success)
        return tuple(sorted(failed, key=lambda result: ("critical", "warning", "info").index(result.severity)))
