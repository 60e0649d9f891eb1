"""Verifies the topics of one publication against state.

The topics are read up to the ends that the last committed transactions made. What an outbox that is being sent may have
changed already, or not yet, shows in that outbox and is not judged.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import TopicRecord
from contexture.operations.verification.comparison import (
    ComparisonResult,
    ExpectedHashes,
    KeyedComparison,
    ReadRecord,
    RecordComparison,
    SentRecord,
    scratch_database,
)
from contexture.operations.verification.contents import content_reader
from contexture.operations.verification.result import Against, Basis, VerificationResult
from contexture.operations.verification.topics import ReplicaTopics, TopicSnapshot
from contexture.publications import Publication, SdmxPublication
from contexture.publications.delivery import KEY_NONE
from contexture.storage.delivery import without_dead_letters
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import PublicationStore
from contexture.storage.replay import BACKFILL_HEADER
from contexture.storage.state import StatePointer
from contexture.storage.state_updates import UNKNOWN_CONTENT

Record = tuple[str, bytes | None, bytes | None]
"""Topic, key and value."""

_STATE_COLUMNS: Final = ["identity", "content_hash", "topics", "key", "sequence"]
_RECORD_COLUMNS: Final = ("topic", "key", "value")


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """An outbox whose records are still stored, and its status."""

    status: OutboxStatus
    manifest: Manifest

    @property
    def sequence(self) -> int:
        """Its place in the publication's order."""
        return self.status.sequence


class Archive:
    """The outboxes of one publication, without those of backfills.

    Args:
        store: of the publication.
    """

    def __init__(self, store: PublicationStore) -> None:
        self._store = store
        self._outboxes = store.outboxes
        self._state = store.state

    def pointer(self) -> StatePointer:
        """The state of now."""
        return self._state.pointer()

    def held(self, pointer: StatePointer) -> Iterator[ExpectedHashes]:
        """What each key of each topic should hold, by a generation of state."""
        for piece in self._state.reader(pointer).pieces(_STATE_COLUMNS):
            columns = (piece.column(name).to_pylist() for name in _STATE_COLUMNS)
            for identity, content, topics, key, sequence in zip(*columns, strict=True):
                for topic in topics:
                    yield ExpectedHashes(topic, key, identity, content, sequence)

    def withheld(self, pointer: StatePointer) -> Iterator[tuple[str, bytes | None]]:
        """Topics and keys of which no one knows which content they hold: a record of theirs is a dead letter."""
        for piece in self._state.reader(pointer).pieces(["topics", "key", "content_hash"]):
            unknown = piece.filter(pc.equal(piece.column("content_hash"), pa.scalar(UNKNOWN_CONTENT, pa.binary(32))))
            for topics, key in zip(
                unknown.column("topics").to_pylist(), unknown.column("key").to_pylist(), strict=True
            ):
                yield from ((topic, key) for topic in topics)

    def concluded(self, until: int) -> list[ArchivedRecord]:
        """The concluded outboxes up to a sequence, in their order."""
        return [each for each in self._all() if each.status.status == "concluded" and each.sequence <= until]

    def moving(self, beyond: int) -> list[ArchivedRecord]:
        """The outboxes behind a sequence of which something may be in the topics: they are sent, or were given up."""
        return [
            each for each in self._all() if each.status.status in {"approved", "abandoned"} and each.sequence > beyond
        ]

    def knows(self, outbox: str) -> bool:
        """Whether an outbox is one of this home, as far as retention has left it."""
        return any(each.outbox == outbox for each in self._outboxes.all())

    def records(self, of: ArchivedRecord) -> Iterator[Record]:
        """The records of an outbox, each shard in its order."""
        for shard in of.manifest.shards:
            yield from self._of_shard(of.manifest, shard.shard)

    def sent(self, of: ArchivedRecord, *, moves: bool = False) -> Iterator[SentRecord]:
        """The same with their shard."""
        for shard in of.manifest.shards:
            for record in self._of_shard(of.manifest, shard.shard):
                yield SentRecord(*record, of.sequence, shard.shard, moves)

    def _of_shard(self, manifest: Manifest, shard: int) -> Iterator[Record]:
        dead_letters = self._store.outbox(manifest.outbox).dead_letters().shards.get(shard, ())
        for batch in without_dead_letters(self._store.reader(manifest, shard).batches(0), dead_letters):
            yield from _rows(batch)

    def _all(self) -> Iterator[ArchivedRecord]:
        for status in self._outboxes.all():
            try:
                manifest = self._outboxes.manifest(status.outbox)
            except ConfigurationError:
                # Retention took it meanwhile.
                continue
            if manifest.mode != "backfill":
                yield ArchivedRecord(status, manifest)


def _rows(batch: Any) -> Iterator[Record]:
    columns = (batch.column(name).to_pylist() for name in _RECORD_COLUMNS)
    return zip(*columns, strict=True)


_TRIES: Final = 5
REPORT_EVERY: Final = 100_000
BACKFILLED: Final = "sent by a backfill"


def basis_of(publication: Publication) -> Basis:
    """By what topics can be compared: records that join lines, or have no key of their own, one by one."""
    is_of_events = not publication.source.has_content
    return "records" if is_of_events or publication.joins_lines or publication.message.key == KEY_NONE else "keys"


def unverifiable(publication: Publication) -> str | None:
    """Returns why no record of a publication can be compared with anything; None where they can."""
    if publication.message.encoder is not None:
        return f"its values are what the encoder {publication.message.encoder} made (message.encoder)"
    if isinstance(publication, SdmxPublication) and publication.message.bundle == "transaction":
        return "a record holds the structures of a whole transaction (message.bundle: transaction)"
    return None


def check_verifiable(publication: Publication) -> None:
    """Checks that a publication's records can be compared with anything.

    Raises:
        ConfigurationError: they cannot, and why.
    """
    reason = unverifiable(publication)
    if reason is not None:
        raise ConfigurationError(
            f"publication {publication.name} cannot be verified: {reason}",
            next_step=f"check a run with: contexture status {publication.name}, and its records with: contexture "
            f"topics read --publication {publication.name}",
            publication=publication.name,
        )


def verify(
    store: PublicationStore,
    publication: Publication,
    topics: ReplicaTopics,
    *,
    report: ProgressCallback = lambda sentence: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> VerificationResult:
    """Compares the topics with what was sent. Writes nothing, neither to Kafka nor to storage.

    Raises:
        ConfigurationError: nothing was published yet, the topics may not be read, or records cannot be compared.
        RetriableError: the publication moves on faster than it can be looked at, another instance is ahead of this
            home, or Kafka or the storage did not answer.
    """
    check_verifiable(publication)
    return _StateVerification(store, publication, topics, report).run(clock())


class TopicVerification:
    """What a verification does against state and against the source alike: it reads topics, and builds the result."""

    against: Against = "sent"

    def __init__(
        self, store: PublicationStore, publication: Publication, topics: ReplicaTopics, report: ProgressCallback
    ) -> None:
        self._store, self._publication, self._topics, self._report = store, publication, topics, report
        self._archive = Archive(store)
        self._basis: Basis = "keys"
        self._keeps_history = publication.topics.keep == "history"
        self._records = self._backfilled = 0

    def _published(self) -> StatePointer:
        pointer = self._archive.pointer()
        if pointer.outbox is None:
            raise ConfigurationError(
                f"nothing of publication {self._publication.name} was published yet, so there is nothing to verify",
                next_step="start it first",
            )
        return pointer

    def _cut(self, topics: list[str]) -> TopicSnapshot:
        cut = self._topics.cut(topics)
        self._report(f"reading {len(cut.ends)} partitions of {len(topics)} topics")
        return cut

    def _read(self, cut: TopicSnapshot) -> Iterator[TopicRecord]:
        self._records = self._backfilled = 0
        for record in self._topics.records(cut):
            self._records += 1
            if self._records % REPORT_EVERY == 0:
                self._report(f"{self._records} records are read")
            # A backfill puts older values behind newer ones where a topic keeps both; on a compacted topic it sends
            # again what is the newest, and nothing else.
            if self._keeps_history and any(name == BACKFILL_HEADER for name, _ in record.headers):
                self._backfilled += 1
            else:
                yield record

    def _held_elsewhere(self, topics: list[str]) -> Iterator[tuple[str, bytes | None]]:
        """Gives the keys that other publications hold in these topics."""
        wanted = set(topics)
        for other in map(Archive, self._store.others()):
            held = other.held(other.pointer())
            yield from ((each.topic, each.key) for each in held if each.topic in wanted)

    def _result(
        self, pointer: StatePointer, cut: TopicSnapshot, outcome: ComparisonResult, *, now: datetime, started: float
    ) -> VerificationResult:
        unjudged = dict(outcome.unjudged)
        if self._backfilled:
            unjudged[BACKFILLED] = self._backfilled
        return VerificationResult(
            publication=self._publication.name,
            verified_at=now,
            seconds=round(time.monotonic() - started, 3),
            against=self.against,
            basis=self._basis,
            generation=pointer.generation,
            sequence=pointer.sequence,
            outbox=pointer.outbox,
            ledger={shard: entry.sequence for shard, entry in sorted(cut.ledger.items())},
            topics=len({topic for topic, _ in cut.ends}) + len(cut.missing),
            partitions=len(cut.ends),
            missing_topics=cut.missing,
            held=outcome.held,
            records=self._records,
            compared=outcome.compared,
            unjudged=unjudged,
            differences=outcome.differences,
            samples=outcome.samples,
        )


class _StateVerification(TopicVerification):
    def run(self, now: datetime) -> VerificationResult:
        started, self._basis = time.monotonic(), basis_of(self._publication)
        for _ in range(_TRIES):
            with scratch_database("contexture-verify-") as database:
                try:
                    looked = self._once(database)
                except FileNotFoundError:
                    # The files of two generations ago are removed.
                    continue
            if looked is not None:
                return self._result(*looked, now=now, started=started)
        raise RetriableError(
            f"publication {self._publication.name} concludes runs faster than its state can be read",
            next_step="verify it at a time with fewer runs",
        )

    def _once(self, database: sqlite3.Connection) -> tuple[StatePointer, TopicSnapshot, ComparisonResult] | None:
        """One look; None when a run was concluded between what is compared."""
        pointer = self._published()
        look = self._by_keys if self._basis == "keys" else self._by_records
        return look(database, pointer)

    def _by_keys(
        self, database: sqlite3.Connection, pointer: StatePointer
    ) -> tuple[StatePointer, TopicSnapshot, ComparisonResult] | None:
        compared = KeyedComparison(database, content_reader(self._publication))
        compared.expect(self._archive.held(pointer))
        compared.withhold(self._archive.withheld(pointer))
        archived = {each.sequence: each for each in self._archive.concluded(pointer.sequence)}
        sequences = compared.sequences()
        for sequence in sequences:
            if sequence in archived:
                compared.sent(sequence, self._archive.records(archived[sequence]))
        cut = self._cut(compared.topics())
        moving = self._moving(pointer, cut)
        if moving is None:
            return None
        for each in moving:
            compared.expect_moved((topic, key) for topic, key, _ in self._archive.records(each))
        compared.observe(self._found(cut))
        if compared.has_extra():
            compared.belong_elsewhere(self._held_elsewhere(compared.topics()))
        first = sequences[-1] if sequences else None
        return pointer, cut, compared.outcome(removed=self._removed(cut), baseline=self._baseline(first, archived))

    def _by_records(
        self, database: sqlite3.Connection, pointer: StatePointer
    ) -> tuple[StatePointer, TopicSnapshot, ComparisonResult] | None:
        archived = self._archive.concluded(pointer.sequence)
        complete = bool(archived) and archived[0].sequence == 1
        compared = RecordComparison(database, complete=complete)
        for each in archived:
            compared.sent(self._archive.sent(each))
        cut = self._cut(compared.topics())
        moving = self._moving(pointer, cut)
        if moving is None:
            return None
        for each in moving:
            compared.sent(self._archive.sent(each, moves=True))
        compared.observe(self._found(cut))
        return pointer, cut, compared.outcome(removed=self._removed(cut))

    def _moving(self, pointer: StatePointer, cut: TopicSnapshot) -> list[ArchivedRecord] | None:
        """The outboxes of which something may be in the cut; None when a run was concluded meanwhile."""
        moving = self._archive.moving(pointer.sequence)
        if self._archive.pointer().generation != pointer.generation:
            return None
        self._check_own(pointer, cut)
        return moving

    def _check_own(self, pointer: StatePointer, cut: TopicSnapshot) -> None:
        """Checks that no other instance of a registry's publication has sent more than this home knows."""
        sent = [entry.source_transaction for entry in cut.ledger.values() if not self._archive.knows(entry.outbox)]
        known = pointer.watermark or ""
        if known.isdecimal() and any(each is not None and each > int(known) for each in sent):
            raise RetriableError(
                "another instance has sent more than this one's state knows, so the topics cannot be compared with it",
                next_step="verify where that instance runs, or here after the next run of this one",
                publication=self._publication.name,
            )

    def _found(self, cut: TopicSnapshot) -> Iterator[ReadRecord]:
        for record in self._read(cut):
            yield ReadRecord(record.topic, record.partition, record.key, record.value)

    def _removed(self, cut: TopicSnapshot) -> frozenset[str]:
        """Topics that may have lost records: on a compacted one nothing is ever removed from the beginning."""
        return cut.removed if self._keeps_history else frozenset()

    def _baseline(self, first: int | None, archived: dict[int, ArchivedRecord]) -> int | None:
        """The first run of a registry's publication may have noted what the registry holds, and sent nothing."""
        if first is None or not self._publication.source.has_log:
            return None
        return first if first not in archived or archived[first].manifest.baseline else None
