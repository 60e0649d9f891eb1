"""Fills the operational tables again, from the ledger and from what storage knows of outboxes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from contexture.monitoring.rows import TransactionRow, TransactionStatus
from contexture.monitoring.store import ProducerStore
from contexture.sending import LedgerEntry
from contexture.storage.delivery import AttemptLog
from contexture.storage.home import Storage
from contexture.storage.manifests import ShardManifest
from contexture.storage.outboxes import Outboxes

_CLAIM = -1

Shard = tuple[str, int]
"""An outbox and its shard."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What stands in the tables again.

    Attributes:
        sent: transactions that the ledger tells.
        pending: transactions of approved outboxes that are still to be sent, as far as is known.
        attempts: shards of which a send has failed.
    """

    publication: str
    sent: int
    pending: int
    attempts: int


def rebuild(
    store: ProducerStore, storage: Storage, publication: str, ledger: Iterable[tuple[int, LedgerEntry]]
) -> Rebuilt:
    """Writes what ledger and storage tell of a publication into the tables; a second time changes nothing.

    Rows that are there already and that neither tells stay. Runs are not told again: Airflow has them, and neither
    ledger nor storage keep what they were called.

    Args:
        store: the tables.
        storage: the home.
        publication: its name.
        ledger: shards and rows, those of a shard in order.

    Raises:
        RetriableError: the database or the storage did not answer.
    """
    pending = _begun(store, storage, publication)
    last: dict[Shard, LedgerEntry] = {}
    sent = 0
    for shard, entry in ledger:
        if entry.transaction == _CLAIM:
            continue
        store.transaction_is(_sent(publication, shard, entry), put_aside=len(entry.dead_letters))
        last[entry.outbox, shard] = entry
        sent += 1
    left = sum(_left(store, publication, place, part, last.get(place)) for place, part in pending.items())
    return Rebuilt(publication, sent, left, _attempts(store, storage, publication))


def _begun(store: ProducerStore, storage: Storage, publication: str) -> dict[Shard, ShardManifest]:
    """The shards of approved outboxes; all that they tell of a registry is pending for now."""
    found: dict[Shard, ShardManifest] = {}
    outboxes = Outboxes(storage, publication)
    for status in outboxes.pending():
        if status.status == "approved":
            parts = {(status.outbox, each.shard): each for each in outboxes.manifest(status.outbox).shards}
            found |= {place: part for place, part in parts.items() if part.records}
    for (outbox, shard), part in found.items():
        if part.registry:
            store.shard_begins(publication, outbox, shard, part.registry)
    return found


def _left(store: ProducerStore, publication: str, place: Shard, part: ShardManifest, last: LedgerEntry | None) -> int:
    """How many transactions of a shard are still to be sent, as far as is known; the next one is noted."""
    done = last.transaction + 1 if last else 0
    if part.registry:
        return max(0, len(part.registry) - done)
    if last is not None and last.position >= part.records:
        return 0
    outbox, shard = place
    now = datetime.now(UTC)
    row = TransactionRow(publication, outbox, shard, done, TransactionStatus.PENDING, 0, 0, 0, None, None, now)
    store.transaction_is(row)
    return 1


def _sent(publication: str, shard: int, entry: LedgerEntry) -> TransactionRow:
    return TransactionRow(
        publication=publication,
        outbox=entry.outbox,
        shard=shard,
        number=entry.transaction,
        status=TransactionStatus.SENT,
        records=entry.records,
        bytes=entry.bytes,
        position=entry.position,
        source_transaction=entry.source_transaction,
        message=None,
        updated_at=entry.at,
        source_deletions=entry.source_deletions,
    )


def _attempts(store: ProducerStore, storage: Storage, publication: str) -> int:
    log, outboxes = AttemptLog(storage, publication), Outboxes(storage, publication)
    found = [send for outbox in storage.folders(outboxes.folder.outboxes()) for send in log.of_outbox(outbox)]
    for send in found:
        store.attempt_is(publication, send)
    return len(found)
