"""Rebuilding a lost ledger from what the home knows and the topics hold.

A transaction is seen whole or not at all, and transactions come in order. So one record of it that was sent for certain
shows it and all before it; one that was not sent for certain shows that it and all after it were not.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.clients import transactional_producer
from contexture.kafka.errors import FencedError, SendAgainError
from contexture.kafka.interfaces import OpenProducer
from contexture.kafka.producer import open_session
from contexture.kafka.reader import TopicRecord, read_committed
from contexture.kafka.settings import ClientSettings
from contexture.sending.choices import encode_of
from contexture.sending.context import Encode
from contexture.sending.dead_letters import dead_letters_found
from contexture.sending.interfaces import LedgerPort
from contexture.sending.ledger import LedgerEntry, SenderNames, commit_row
from contexture.sending.resume import Fencings, OwnCommits
from contexture.sending.shard_records import TopicKey
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.publication_store import PublicationStore
from contexture.storage.schemas import HEADER_PREFIX


@dataclass(frozen=True, slots=True)
class SentAccordingToHome:
    """What the home stores of the sent outboxes of one publication.

    Attributes:
        store: of the publication.
        concluded: the ledger's row that the last concluded run represents.
        finished: the manifest of that run's outbox, as long as it is kept.
        pending: the manifest of the approved outbox that comes after it.
    """

    store: PublicationStore
    concluded: LedgerEntry | None
    finished: Manifest | None
    pending: Manifest | None

    @property
    def shards(self) -> int:
        """How many the ledger needs."""
        return max((len(each.shards) for each in (self.finished, self.pending) if each is not None), default=1)

    def concluded_entry(self, shard: int) -> LedgerEntry | None:
        """Returns the row of a shard once the last concluded run had sent the whole of its outbox."""
        part = shard_of(self.finished, shard)
        if self.concluded is None or part is None:
            return self.concluded
        return replace(
            self.concluded,
            position=part.records,
            records=part.records,
            bytes=part.bytes,
            transaction=part.transactions - 1,
        )

    def records(self, settings: ClientSettings, outbox: str) -> Iterator[TopicRecord]:
        """Yields all that is committed in the topics of an outbox."""
        yield from read_committed(settings, list(self.store.outbox(outbox).topic_counts()))

    def letters(self, settings: ClientSettings, run: str) -> Iterator[TopicRecord]:
        """Returns all that is committed in the dead-letter topic, if the outbox of that run was prepared for one."""
        topic = self.store.run(run).order().publication.dead_letter_topic
        return iter(()) if topic is None else read_committed(settings, [topic])


def known_sent(store: PublicationStore) -> SentAccordingToHome:
    """Reads from a home what was sent.

    Raises:
        ConfigurationError: nothing: the publication was never sent from there.
    """
    pointer, outboxes = store.state.pointer(), store.outboxes
    # A process that died between state and status has concluded its outbox all the same: the whole of it was sent.
    waiting = [status for status in outboxes.pending() if status.outbox != pointer.outbox]
    approved = [status.outbox for status in waiting if status.status == "approved"]
    manifests = [manifest for manifest in map(outboxes.manifest, approved) if manifest.interval is None]
    if pointer.outbox is None and not manifests:
        raise ConfigurationError(
            f"nothing of publication {store.name} was ever sent from {store.home.root}: there is nothing to rebuild",
            next_step="set CONTEXTURE_HOME as Airflow has it",
        )
    finished, concluded = None, None
    if pointer.outbox is not None:
        finished = outboxes.manifest(pointer.outbox) if store.outbox(pointer.outbox).has_manifest() else None
        concluded = settled_entry(
            pointer.outbox, pointer.sequence, _sent_position(pointer.watermark, [finished, *manifests])
        )
    return SentAccordingToHome(store, concluded, finished, manifests[0] if manifests else None)


def settled_entry(outbox: str, sequence: int, log_sent_to: int | None) -> LedgerEntry:
    """Returns the row of an outbox of which all is settled, with the transaction up to which a log was sent."""
    return LedgerEntry(outbox, sequence, 0, 0, 0, -1, log_sent_to, datetime.now(UTC), log_sent_to is not None)


def shard_of(manifest: Manifest | None, shard: int) -> ShardManifest | None:
    """Returns the part of an outbox that is one shard; None where it has none of that number."""
    shards = manifest.shards if manifest is not None else ()
    return next((each for each in shards if each.shard == shard), None)


def is_numbered(manifest: Manifest) -> bool:
    """Returns whether the outbox is of a registry that numbers its transactions."""
    return any(each.registry for each in manifest.shards)


def _sent_position(watermark: str | None, manifests: Iterable[Manifest | None]) -> int | None:
    """Returns up to which transaction the log was sent, for a registry that numbers its transactions."""
    numbered = any(is_numbered(manifest) for manifest in manifests if manifest is not None)
    return int(watermark) if numbered and watermark is not None and watermark.isdecimal() else None


Headers = Iterable[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class OutboxRecord:
    """A record of an outbox: where it goes, in which transaction, and a digest of what it holds."""

    transaction: int
    place: TopicKey
    digest: bytes


@dataclass(frozen=True, slots=True)
class SentTransactions:
    """How many transactions of a shard were sent: `certain` at least, `possible` at most."""

    certain: int
    possible: int


def digest_of(value: bytes | None, headers: Headers) -> bytes:
    """Returns what a record holds, in 16 bytes."""
    hashed = blake2b(b"-" if value is None else b"+" + value, digest_size=16)
    for name, content in sorted((name, content or b"") for name, content in headers):
        hashed.update(b"%d:%d:" % (len(name), len(content)) + name.encode() + content)
    return hashed.digest()


def transactions_sent(
    records: Iterable[OutboxRecord],
    newest: Mapping[TopicKey, bytes],
    anywhere: frozenset[bytes] | set[bytes],
    *,
    transactions: int,
    differs: bool,
    known: int = 0,
) -> SentTransactions:
    """Returns how many were sent.

    Args:
        records: of the shard, in sending order.
        newest: the digest of the last record of each topic and key in Kafka.
        anywhere: digests of all records in Kafka that have no key.
        transactions: how many the shard has.
        differs: each key's first record differs from what Kafka held before (an outbox of changes); of a full run it
            may be the same.
        known: how many were sent for certain, by other signs.
    """
    by_place: defaultdict[TopicKey, list[OutboxRecord]] = defaultdict(list)
    for record in records:
        by_place[record.place].append(record)
    certain, possible = known, transactions
    for place, sent in by_place.items():
        least, most = _of_keyless(sent, anywhere) if place[1] is None else _of_key(sent, newest.get(place), differs)
        certain, possible = max(certain, least), min(possible, transactions if most is None else most)
    return SentTransactions(min(certain, possible), possible)


class _Bounds(NamedTuple):
    """How many transactions were sent: at least, and at most (None for no limit)."""

    least: int
    most: int | None


def _of_key(sent: Sequence[OutboxRecord], newest: bytes | None, differs: bool) -> _Bounds:
    matches = [index for index, record in enumerate(sent) if record.digest == newest]
    if not matches:
        return _Bounds(0, sent[0].transaction)
    following = matches[-1] + 1
    most = sent[following].transaction if following < len(sent) else None
    # A later record of the key may hold what Kafka held before all of them.
    return _Bounds(sent[0].transaction + 1 if differs and matches == [0] else 0, most)


def _of_keyless(sent: Sequence[OutboxRecord], anywhere: frozenset[bytes] | set[bytes]) -> _Bounds:
    missing = [record.transaction for record in sent if record.digest not in anywhere]
    return _Bounds(0, missing[0] if missing else None)


@dataclass(frozen=True, slots=True)
class RebuiltShard:
    """What the ledger will say of one shard.

    Attributes:
        shard: its number.
        entry: the row; None when nothing was sent.
        why: how it is known, in one sentence.
        uncertain: transactions of which the topics do not show whether they were sent.
    """

    shard: int
    entry: LedgerEntry | None
    why: str
    uncertain: int = 0


@dataclass(frozen=True, slots=True)
class _InKafka:
    """What the topics of an outbox hold: the newest record of each key, all without key, and dead letters."""

    newest: dict[TopicKey, bytes]
    keyless: set[bytes]
    aside: dict[int, frozenset[int]]


def ledger_from_records(
    settings: ClientSettings, known: SentAccordingToHome, pending: Manifest, *, assume_sent: bool
) -> Iterator[RebuiltShard]:
    """Yields what the ledger should contain of each shard, while an outbox is under way.

    `assume_sent` counts transactions that the topics do not show as sent."""
    found = _in_kafka(settings, known, pending)
    encode = encode_of(known.store.run(pending.run).order().publication, settings)
    for shard in range(known.shards):
        part = shard_of(pending, shard)
        if part is None or not part.records:
            # As quality_gate claimed it.
            entry = settled_entry(pending.outbox, pending.sequence, None)
            yield RebuiltShard(shard, entry, f"outbox {pending.outbox} has no records here")
        else:
            records = list(_outbox_records(known.store.reader(pending, part.shard), encode))
            yield _of_shard(known, pending, part, records, found, assume_sent=assume_sent)


def _in_kafka(settings: ClientSettings, known: SentAccordingToHome, pending: Manifest) -> _InKafka:
    newest: dict[TopicKey, bytes] = {}
    keyless: set[bytes] = set()
    for record in known.records(settings, pending.outbox):
        digest = digest_of(record.value, record.headers)
        if record.key is None:
            keyless.add(digest)
        else:
            newest[record.topic, record.key] = digest
    return _InKafka(newest, keyless, dead_letters_found(known.letters(settings, pending.run), pending.outbox))


def _of_shard(
    known: SentAccordingToHome,
    pending: Manifest,
    part: ShardManifest,
    records: list[OutboxRecord],
    found: _InKafka,
    *,
    assume_sent: bool,
) -> RebuiltShard:
    left_out = found.aside.get(part.shard, frozenset())
    counts = _sent_of(records, pending, part, found, left_out)
    sent = counts.possible if assume_sent else counts.certain
    why = f"{sent} of {part.transactions} transactions of outbox {pending.outbox} are in Kafka"
    # Where none is: not the start of what was concluded, because a cleared task of that run would send it again.
    entry = _sent_entry(pending, part, records, sent, left_out) if sent else known.concluded_entry(part.shard)
    return RebuiltShard(part.shard, entry, why, counts.possible - counts.certain)


def _sent_of(
    records: list[OutboxRecord], pending: Manifest, part: ShardManifest, found: _InKafka, left_out: frozenset[int]
) -> SentTransactions:
    return transactions_sent(
        [record for position, record in enumerate(records) if position not in left_out],
        found.newest,
        found.keyless,
        transactions=part.transactions,
        differs=pending.mode == "changes",
        # A dead letter was sent with its transaction.
        known=max((records[position].transaction + 1 for position in left_out), default=0),
    )


def _sent_entry(
    pending: Manifest, part: ShardManifest, records: list[OutboxRecord], sent: int, left_out: frozenset[int]
) -> LedgerEntry:
    position = sum(record.transaction < sent for record in records)
    last = sum(record.transaction == sent - 1 for record in records)
    place = part.registry[sent - 1].place if sent <= len(part.registry) else (None, False)
    return LedgerEntry(
        pending.outbox,
        pending.sequence,
        position,
        last,
        0,
        sent - 1,
        place[0],
        datetime.now(UTC),
        place[1],
        tuple(sorted(each for each in left_out if each < position)),
    )


def _outbox_records(reader: OutboxShardReader, encode: Encode | None) -> Iterator[OutboxRecord]:
    for prepared in reader.batches(0):
        batch = prepared if encode is None else encode(prepared)
        varying = [name for name in batch.schema.names if name.startswith(HEADER_PREFIX)]
        for row in batch.to_pylist():
            own = [(name.removeprefix(HEADER_PREFIX), row[name]) for name in varying if row[name] is not None]
            yield OutboxRecord(
                row["transaction"], (row["topic"], row["key"]), digest_of(row["value"], [*reader.headers, *own])
            )


_REGISTRY_HEADER = "contexture_registry_transaction"


def planned_rebuild(
    settings: ClientSettings, store: PublicationStore, *, assume_sent: bool = False
) -> tuple[RebuiltShard, ...]:
    """Returns what the ledger of a publication should say, shard by shard; nothing is written.

    Args:
        settings: the connection.
        store: of the publication.
        assume_sent: count transactions that the topics do not show as sent; otherwise they are sent again.

    Raises:
        ConfigurationError: the home knows nothing of the publication.
        KafkaConfigurationError: a topic is not there, or may not be read.
        BrokersAwayError: the brokers are silent.
    """
    known = known_sent(store)
    if known.pending is None:
        return tuple(_concluded(known, shard) for shard in range(known.shards))
    if is_numbered(known.pending) and not known.pending.flush:
        return (_by_registry(settings, known, known.pending),)
    return tuple(ledger_from_records(settings, known, known.pending, assume_sent=assume_sent))


def _concluded(known: SentAccordingToHome, shard: int) -> RebuiltShard:
    """By what the last concluded run sent: the whole of its outbox."""
    entry = known.concluded_entry(shard)
    why = "nothing was sent" if entry is None else f"outbox {entry.outbox} was concluded"
    return RebuiltShard(shard, entry, why)


def _by_registry(settings: ClientSettings, known: SentAccordingToHome, pending: Manifest) -> RebuiltShard:
    """By the numbers of registry transactions that records carry."""
    places = [part.place for each in pending.shards for part in each.registry]
    carried = map(_place, known.records(settings, pending.outbox))
    found = [place for place in carried if place is not None]
    before = known.concluded.source_place if known.concluded else None
    place = max([*found, *([before] if before else [])], default=None)
    if place is None:
        return RebuiltShard(0, None, "no record carries a registry transaction")
    base = known.concluded or settled_entry("rebuilt", pending.sequence - 1, None)
    entry = replace(base, source_transaction=place[0], source_deletions=place[1])
    ahead = sum(each <= place for each in places)
    return RebuiltShard(0, entry, f"sent up to registry transaction {place[0]}; {ahead} of {len(places)} are in Kafka")


def _place(record: TopicRecord) -> tuple[int, bool] | None:
    number = dict(record.headers).get(_REGISTRY_HEADER)
    return (int(number), record.value is None) if number is not None and number.isdigit() else None


_LOG: Final = logging.getLogger(__name__)


def write_rows(
    settings: ClientSettings,
    names: SenderNames,
    ledger: LedgerPort,
    rows: Mapping[int, LedgerEntry],
    *,
    shards: int,
    broker_wait: BrokerWait | None = None,
    open_producer: OpenProducer = transactional_producer,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fences every sender of these shards and writes what the ledger says of them; makes the ledger if need be.

    Raises:
        RetriableError: a row was not written; writing again does no harm.
        KafkaConfigurationError: this user may not.
        FencedError: a sender of a shard wrote a row meanwhile, or fenced this one four times in a row.
    """
    broker_wait = broker_wait or BrokerWait(300.0)
    ledger.prepare(shards)
    for shard, entry in rows.items():
        own = OwnCommits()
        fencings = Fencings(own, ledger, shard, _LOG.warning, sleep)
        own.found(fencings.row())
        own.writes(entry)
        is_written = False
        while not is_written:
            session = open_session(
                settings,
                names.transactional_id(shard),
                broker_wait,
                ledger_topic=ledger.topic,
                open_producer=open_producer,
            )
            try:
                session.initialise()
                commit_row(session, ledger, shard, entry)
                is_written = True
            except FencedError as failure:
                fencings.look_into(failure)
            except SendAgainError as failure:
                raise RetriableError(
                    failure.error.message, next_step="start it again: writing the same rows again does no harm"
                ) from failure
            finally:
                session.close()
