"""How far the shards of an outbox are sent, by comparing its records with what the topics hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from contexture.kafka.settings import ClientSettings
from contexture.sending.dead_letter import dead_letters_found
from contexture.sending.known_sent import KnownSent, settled_entry, shard_of
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.sent_before import OutboxRecord, Place, SentTransactions, digest_of, transactions_sent
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.schemas import HEADER_PREFIX


@dataclass(frozen=True, slots=True)
class RebuiltShard:
    """What the ledger will say of one shard.

    Attributes:
        shard: its number.
        entry: the row; None when nothing was sent.
        why: how it is known, in one sentence.
        uncertain: transactions of which the topics do not tell whether they were sent.
    """

    shard: int
    entry: LedgerEntry | None
    why: str
    uncertain: int = 0


@dataclass(frozen=True, slots=True)
class _InKafka:
    """What the topics of an outbox hold: the newest record of each key, all without one, and what was set aside."""

    newest: dict[Place, bytes]
    keyless: set[bytes]
    aside: dict[int, frozenset[int]]


def by_records(
    settings: ClientSettings, known: KnownSent, pending: Manifest, *, assume_sent: bool
) -> Iterator[RebuiltShard]:
    """What the ledger should say of each shard, while an outbox is under way.

    Args:
        settings: the connection.
        known: what the home knows.
        pending: the outbox.
        assume_sent: take transactions of which the topics do not tell for sent.
    """
    found = _in_kafka(settings, known, pending)
    for shard in range(known.shards):
        part = shard_of(pending, shard)
        if part is None or not part.records:
            # As quality_gate claimed it.
            entry = settled_entry(pending.outbox, pending.sequence, None)
            yield RebuiltShard(shard, entry, f"outbox {pending.outbox} has no records here")
        else:
            yield _of_shard(known, pending, part, found, assume_sent=assume_sent)


def _in_kafka(settings: ClientSettings, known: KnownSent, pending: Manifest) -> _InKafka:
    newest: dict[Place, bytes] = {}
    keyless: set[bytes] = set()
    for record in known.records(settings, pending.outbox):
        digest = digest_of(record.value, record.headers)
        if record.key is None:
            keyless.add(digest)
        else:
            newest[record.topic, record.key] = digest
    return _InKafka(newest, keyless, dead_letters_found(known.letters(settings, pending.run), pending.outbox))


def _of_shard(
    known: KnownSent, pending: Manifest, part: ShardManifest, found: _InKafka, *, assume_sent: bool
) -> RebuiltShard:
    left_out = found.aside.get(part.shard, frozenset())
    records = list(_outbox_records(OutboxShardReader(known.storage, pending, part.shard)))
    told = _sent_of(records, pending, part, found, left_out)
    sent = told.possible if assume_sent else told.certain
    why = f"{sent} of {part.transactions} transactions of outbox {pending.outbox} are in Kafka"
    # Where none is: not the start of what was concluded, for a cleared task of that run would send it again.
    entry = _sent_entry(pending, part, records, sent, left_out) if sent else known.concluded_entry(part.shard)
    return RebuiltShard(part.shard, entry, why, told.possible - told.certain)


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


def _outbox_records(reader: OutboxShardReader) -> Iterator[OutboxRecord]:
    for batch in reader.batches(0):
        varying = [name for name in batch.schema.names if name.startswith(HEADER_PREFIX)]
        for row in batch.to_pylist():
            own = [(name.removeprefix(HEADER_PREFIX), row[name]) for name in varying if row[name] is not None]
            yield OutboxRecord(
                row["transaction"], (row["topic"], row["key"]), digest_of(row["value"], [*reader.headers, *own])
            )
