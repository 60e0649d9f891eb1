"""Rebuilding a lost ledger from what the home knows and the topics hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.kafka.dead_letter import dead_letters_found
from contexture.kafka.ledger_entry import LedgerEntry
from contexture.kafka.replica import ReplicaRecord, read_committed
from contexture.kafka.sent_before import OutboxRecord, Place, digest_of, transactions_sent
from contexture.kafka.settings import ClientSettings
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest, ShardManifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.reader import OutboxShardReader
from contexture.outbox.schemas import HEADER_PREFIX
from contexture.outbox.state import State
from contexture.outbox.storage import Storage

_REGISTRY_HEADER = "contexture_registry_transaction"


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
class _Known:
    """What the home knows: what was concluded, and the outbox that is under way."""

    storage: Storage
    publication: str
    concluded: LedgerEntry | None
    finished: Manifest | None
    pending: Manifest | None

    @property
    def shards(self) -> int:
        """How many the ledger needs."""
        return max((len(each.shards) for each in (self.finished, self.pending) if each is not None), default=1)


def planned_rebuild(
    settings: ClientSettings, storage: Storage, publication: str, *, assume_sent: bool = False
) -> tuple[RebuiltShard, ...]:
    """What the ledger of a publication should say, shard by shard; nothing is written.

    Args:
        settings: the connection.
        storage: the home.
        publication: its name.
        assume_sent: take transactions of which the topics do not tell for sent; otherwise they are sent again.

    Raises:
        ConfigurationError: the home knows nothing of the publication.
        KafkaConfigurationError: a topic is not there, or may not be read.
        BrokersAwayError: the brokers are silent.
    """
    known = _known(storage, publication)
    if known.pending is not None and _is_numbered(known.pending) and not known.pending.flush:
        return (_by_registry(settings, known, known.pending),)
    if known.pending is None:
        return tuple(_concluded(known, shard) for shard in range(known.shards))
    return tuple(_by_records(settings, known, known.pending, assume_sent))


def _known(storage: Storage, publication: str) -> _Known:
    pointer, outboxes = State(storage, publication).pointer(), Outboxes(storage, publication)
    approved = [status.outbox for status in outboxes.pending() if status.status == "approved"]
    manifests = [manifest for manifest in map(outboxes.manifest, approved) if manifest.interval is None]
    if pointer.outbox is None and not manifests:
        raise ConfigurationError(
            f"nothing of publication {publication} was ever sent from {storage.root}: there is nothing to rebuild",
            next_step="set CONTEXTURE_HOME as Airflow has it",
        )
    finished, concluded = None, None
    if pointer.outbox is not None:
        kept = storage.exists(PublicationFolder(publication).manifest(pointer.outbox))
        finished = outboxes.manifest(pointer.outbox) if kept else None
        concluded = _entry(pointer.outbox, pointer.sequence, _told(pointer.watermark, [finished, *manifests]))
    return _Known(storage, publication, concluded, finished, manifests[0] if manifests else None)


def _entry(outbox: str, sequence: int, told: int | None) -> LedgerEntry:
    """A row that says: everything up to this outbox is settled."""
    return LedgerEntry(outbox, sequence, 0, 0, 0, -1, told, datetime.now(UTC), told is not None)


def _concluded(known: _Known, shard: int) -> RebuiltShard:
    """By what the last concluded run sent: the whole of its outbox."""
    entry = known.concluded
    if entry is None:
        return RebuiltShard(shard, None, "nothing was sent")
    part = _shard_of(known.finished, shard)
    if part is not None:
        entry = replace(
            entry, position=part.records, records=part.records, bytes=part.bytes, transaction=part.transactions - 1
        )
    return RebuiltShard(shard, entry, f"outbox {entry.outbox} was concluded")


def _by_registry(settings: ClientSettings, known: _Known, pending: Manifest) -> RebuiltShard:
    """By the numbers of registry transactions that records carry."""
    places = [part.place for each in pending.shards for part in each.registry]
    found = [place for record in _records_of(settings, known, pending) if (place := _place(record)) is not None]
    before = known.concluded.source_place if known.concluded else None
    place = max([*found, *([before] if before else [])], default=None)
    if place is None:
        return RebuiltShard(0, None, "no record carries a registry transaction")
    base = known.concluded or _entry("rebuilt", pending.sequence - 1, None)
    entry = replace(base, source_transaction=place[0], source_deletions=place[1])
    ahead = sum(each <= place for each in places)
    return RebuiltShard(0, entry, f"told up to registry transaction {place[0]}; {ahead} of {len(places)} are in Kafka")


def _place(record: ReplicaRecord) -> tuple[int, bool] | None:
    number = dict(record.headers).get(_REGISTRY_HEADER)
    return (int(number), record.value is None) if number is not None and number.isdigit() else None


def _by_records(
    settings: ClientSettings, known: _Known, pending: Manifest, assume_sent: bool
) -> Iterator[RebuiltShard]:
    """By comparing the outbox that is under way with what the topics hold."""
    newest: dict[Place, bytes] = {}
    keyless: set[bytes] = set()
    for record in _records_of(settings, known, pending):
        digest = digest_of(record.value, record.headers)
        if record.key is None:
            keyless.add(digest)
        else:
            newest[record.topic, record.key] = digest
    aside = dead_letters_found(_letters(settings, known, pending), pending.outbox)
    for shard in range(known.shards):
        left_out = aside.get(shard, frozenset())
        yield _of_shard(known, pending, shard, newest, keyless, left_out, assume_sent=assume_sent)


def _letters(settings: ClientSettings, known: _Known, pending: Manifest) -> Iterator[ReplicaRecord]:
    """All that is committed in the dead-letter topic, if the outbox was prepared for one."""
    order = known.storage.read(PublicationFolder(known.publication).order(pending.run))
    topic = StageOrder.model_validate_json(order).publication.dead_letter_topic
    return iter(()) if topic is None else read_committed(settings, [topic])


def _of_shard(
    known: _Known,
    pending: Manifest,
    shard: int,
    newest: Mapping[Place, bytes],
    keyless: set[bytes],
    left_out: frozenset[int],
    *,
    assume_sent: bool,
) -> RebuiltShard:
    part = _shard_of(pending, shard)
    if part is None or not part.records:
        # As quality_gate claimed it.
        entry = _entry(pending.outbox, pending.sequence, None)
        return RebuiltShard(shard, entry, f"outbox {pending.outbox} has no records here")
    reader = OutboxShardReader(known.storage, pending, shard)
    records = list(_outbox_records(reader))
    found = transactions_sent(
        [record for position, record in enumerate(records) if position not in left_out],
        newest,
        keyless,
        transactions=part.transactions,
        differs=pending.mode == "changes",
        # A dead letter was sent with its transaction.
        known=max((records[position].transaction + 1 for position in left_out), default=0),
    )
    sent = found.possible if assume_sent else found.certain
    why = f"{sent} of {part.transactions} transactions of outbox {pending.outbox} are in Kafka"
    uncertain = found.possible - found.certain
    if not sent:
        # Not the start of what was concluded: a cleared task of that run would send it again.
        return RebuiltShard(shard, _concluded(known, shard).entry, why, uncertain)
    return RebuiltShard(shard, _sent_entry(pending, part, records, sent, left_out), why, uncertain)


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


def _records_of(settings: ClientSettings, known: _Known, pending: Manifest) -> Iterator[ReplicaRecord]:
    """All that is committed in the topics of an outbox."""
    path = known.storage.path(PublicationFolder(known.publication).topics(pending.outbox))
    table = pq.read_table(path, columns=["topic"], filesystem=known.storage.filesystem, partitioning=None)
    yield from read_committed(settings, table.column("topic").to_pylist())


def _shard_of(manifest: Manifest | None, shard: int) -> ShardManifest | None:
    shards = manifest.shards if manifest is not None else ()
    return next((each for each in shards if each.shard == shard), None)


def _is_numbered(manifest: Manifest) -> bool:
    return any(each.registry for each in manifest.shards)


def _told(watermark: str | None, manifests: Iterable[Manifest | None]) -> int | None:
    """How far the log of a registry that numbers its transactions is told."""
    numbered = any(_is_numbered(manifest) for manifest in manifests if manifest is not None)
    return int(watermark) if numbered and watermark is not None and watermark.isdecimal() else None
