"""A Kafka in memory, behind the port that the tasks use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from builders.outboxes import NOON, Record
from contexture.errors import ContextureError
from contexture.kafka.topic_identities import HIDDEN
from contexture.publications import Publication
from contexture.sending import LedgerEntry, SenderNames, ShardReader, ShardResult
from contexture.sending.ledger import LedgerStatus
from contexture.sending.ledger_copies import LedgerCopies
from contexture.sending.resume import find_resume_point
from contexture.sending.size_limits import SizeLimits, check_records
from contexture.sending.target import SendRequest
from contexture.storage.manifests import Manifest


@dataclass
class FakeTarget:
    """Keeps what is sent, and a ledger; fails as often as a test requests."""

    cluster_id: str = "cluster-a"
    failures: list[ContextureError] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    sent: list[Record] = field(default_factory=list)
    ledger: dict[int, LedgerEntry] = field(default_factory=dict)
    waited_ms: list[int] = field(default_factory=list)
    opened_for: list[tuple[str, object]] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    is_superseded: bool = False
    ledger_topic: str | None = None
    policy: str = "compact"
    expected_rows: list[str] = field(default_factory=list)
    copies: LedgerCopies | None = None
    hidden_topics: set[str] = field(default_factory=set)
    removed: Counter[str] = field(default_factory=Counter)
    refused: dict[int, tuple[int, ...]] = field(default_factory=dict)
    client_bytes: int = 1_000_000
    checked_sizes: list[int] = field(default_factory=list)

    def __call__(self, publication: Publication, interval: object) -> FakeTarget:
        """Replaces the function that opens targets."""
        self.opened_for.append((publication.name, interval))
        return self

    def cluster(self) -> str:
        return self.cluster_id

    def identity(self) -> str:
        return "PLAINTEXT://broker:9092"

    def settings_shown(self) -> dict[str, str]:
        return {"bootstrap.servers": "broker:9092", "sasl.password": "***"}

    def highest_sequence(self) -> int:
        return max((entry.sequence for entry in self.ledger.values()), default=0)

    def ledger_status(self) -> LedgerStatus:
        return LedgerStatus(self.ledger_topic, frozenset(self.ledger), self.ledger_policy())

    def ledger_id(self) -> str | None:
        return self.ledger_topic

    def ledger_policy(self) -> str | None:
        return None if self.ledger_topic is None else self.policy

    def names(self) -> SenderNames:
        return SenderNames("vehicles")

    def ledger_copies(self) -> LedgerCopies | None:
        return self.copies

    def prepare_ledger(self, shards: int) -> None:
        self.ledger_topic = self.ledger_topic or "ledger-a"

    def sent_log_position(self) -> int | None:
        entry = self.ledger.get(0)
        return None if entry is None else entry.source_transaction

    def progress(self, shard: int) -> LedgerEntry | None:
        return self.ledger.get(shard)

    def ensure_topics(self, topics: Iterable[str]) -> None:
        self.topics |= set(topics)

    def check_sizes(self, reader: ShardReader, topics: Collection[str], size: int) -> None:
        self.checked_sizes.append(size)
        limits = SizeLimits(self.client_bytes, {}, compression="none")
        check_records(reader, limits)

    def topic_ids(self, topics: Iterable[str], *, all_exist: bool = False) -> dict[str, str]:
        hidden = dict.fromkeys(self.hidden_topics & set(topics), HIDDEN)
        return {topic: f"{topic}-{self.removed[topic]}" for topic in topics if topic in self.topics} | hidden

    def remove_topic(self, topic: str) -> None:
        """Removes it; the next one of this name has another id."""
        self.topics.discard(topic)
        self.removed[topic] += 1

    def claim(self, manifest: Manifest, *, clears: object = None) -> bool:
        self.claims.append(manifest.outbox)
        self.fenced_all = clears is not None
        self.cleared = set(clears or ())
        return not self.is_superseded

    def set_log_start(self, manifest: Manifest, transaction: int) -> int:
        known = self.ledger.get(0)
        if known is None or known.source_transaction is None:
            self.stand(0, manifest.outbox, manifest.sequence, 0, transaction, deletions=True)
            return transaction
        return known.source_transaction

    def send(self, sending: SendRequest) -> ShardResult:
        reader = sending.reader
        self.expected_rows.append(sending.row.value)
        while self.failures:
            failure = self.failures.pop(0)
            delay_ms = sending.after_failure(failure)
            if delay_ms is None:
                raise failure
            self.waited_ms.append(delay_ms)
        entry = self.ledger.get(reader.shard)
        done = entry.position if entry is not None and entry.outbox == reader.outbox_id else 0
        if reader.registry:
            start = find_resume_point(reader, entry)
            done = start.position
            sending.skipped(start.transactions)
        for batch in reader.batches(done):
            rows = batch.to_pylist()
            assert {row["topic"] for row in rows} <= self.topics, "topics are there before the first record"
            self.sent += [(row["topic"], row["key"], row["value"]) for row in rows]
        if done < reader.records or not reader.registry:
            last = reader.registry[-1].place if reader.registry else (None, False)
            self.stand(reader.shard, reader.outbox_id, reader.sequence, reader.records, *last)
            sending.committed(self.ledger[reader.shard])
        return ShardResult(reader.shard, reader.outbox_id, reader.records - done, done, 1, 0, 0.0, superseded=False)

    def stand(
        self, shard: int, outbox: str, sequence: int, position: int, source: int | None = None, deletions: bool = False
    ) -> None:
        """Puts a row into the ledger."""
        refused = self.refused.get(shard, ())
        self.ledger[shard] = LedgerEntry(outbox, sequence, position, position, 0, 0, source, NOON, deletions, refused)
