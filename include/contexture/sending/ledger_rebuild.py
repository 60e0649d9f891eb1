"""Rebuilding a lost ledger from what the home knows and the topics hold."""

from __future__ import annotations

from dataclasses import replace

from contexture.kafka.replica import ReplicaRecord
from contexture.kafka.settings import ClientSettings
from contexture.sending.known_sent import KnownSent, is_numbered, known_sent, settled_entry
from contexture.sending.ledger_by_records import RebuiltShard, by_records
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest

_REGISTRY_HEADER = "contexture_registry_transaction"


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
    known = known_sent(storage, publication)
    if known.pending is None:
        return tuple(_concluded(known, shard) for shard in range(known.shards))
    if is_numbered(known.pending) and not known.pending.flush:
        return (_by_registry(settings, known, known.pending),)
    return tuple(by_records(settings, known, known.pending, assume_sent=assume_sent))


def _concluded(known: KnownSent, shard: int) -> RebuiltShard:
    """By what the last concluded run sent: the whole of its outbox."""
    entry = known.concluded_entry(shard)
    why = "nothing was sent" if entry is None else f"outbox {entry.outbox} was concluded"
    return RebuiltShard(shard, entry, why)


def _by_registry(settings: ClientSettings, known: KnownSent, pending: Manifest) -> RebuiltShard:
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
    return RebuiltShard(0, entry, f"told up to registry transaction {place[0]}; {ahead} of {len(places)} are in Kafka")


def _place(record: ReplicaRecord) -> tuple[int, bool] | None:
    number = dict(record.headers).get(_REGISTRY_HEADER)
    return (int(number), record.value is None) if number is not None and number.isdigit() else None
