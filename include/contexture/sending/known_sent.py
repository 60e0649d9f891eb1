"""What a home knows of what was sent, for a ledger that is lost: what was concluded, and what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.kafka.replica import ReplicaRecord, read_committed
from contexture.kafka.settings import ClientSettings
from contexture.sending.ledger_entry import LedgerEntry
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State


@dataclass(frozen=True, slots=True)
class KnownSent:
    """Of one publication.

    Attributes:
        storage: the home.
        publication: its name.
        concluded: the ledger's row that the last concluded run stands for.
        finished: the manifest of that run's outbox, as long as it is kept.
        pending: the manifest of the approved outbox that comes after it.
    """

    storage: Storage
    publication: str
    concluded: LedgerEntry | None
    finished: Manifest | None
    pending: Manifest | None

    @property
    def shards(self) -> int:
        """How many the ledger needs."""
        return max((len(each.shards) for each in (self.finished, self.pending) if each is not None), default=1)

    def concluded_entry(self, shard: int) -> LedgerEntry | None:
        """The row of a shard once the last concluded run had sent the whole of its outbox."""
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

    def records(self, settings: ClientSettings, outbox: str) -> Iterator[ReplicaRecord]:
        """All that is committed in the topics of an outbox."""
        path = self.storage.path(PublicationFolder(self.publication).topics(outbox))
        table = pq.read_table(path, columns=["topic"], filesystem=self.storage.filesystem, partitioning=None)
        yield from read_committed(settings, table.column("topic").to_pylist())

    def letters(self, settings: ClientSettings, run: str) -> Iterator[ReplicaRecord]:
        """All that is committed in the dead-letter topic, if the outbox of that run was prepared for one."""
        order = self.storage.read(PublicationFolder(self.publication).order(run))
        topic = StageOrder.model_validate_json(order).publication.dead_letter_topic
        return iter(()) if topic is None else read_committed(settings, [topic])


def known_sent(storage: Storage, publication: str) -> KnownSent:
    """What a home knows.

    Raises:
        ConfigurationError: nothing: the publication was never sent from there.
    """
    pointer, outboxes = State(storage, publication).pointer(), Outboxes(storage, publication)
    # A process that died between state and status has concluded its outbox all the same: the whole of it was sent.
    waiting = [status for status in outboxes.pending() if status.outbox != pointer.outbox]
    approved = [status.outbox for status in waiting if status.status == "approved"]
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
        concluded = settled_entry(pointer.outbox, pointer.sequence, _told(pointer.watermark, [finished, *manifests]))
    return KnownSent(storage, publication, concluded, finished, manifests[0] if manifests else None)


def settled_entry(outbox: str, sequence: int, told: int | None) -> LedgerEntry:
    """A row that says: everything up to this outbox is settled; a registry's log is told up to a transaction."""
    return LedgerEntry(outbox, sequence, 0, 0, 0, -1, told, datetime.now(UTC), told is not None)


def shard_of(manifest: Manifest | None, shard: int) -> ShardManifest | None:
    """The part of an outbox that is one shard; None where it has none of that number."""
    shards = manifest.shards if manifest is not None else ()
    return next((each for each in shards if each.shard == shard), None)


def is_numbered(manifest: Manifest) -> bool:
    """Whether it is of a registry that numbers its transactions."""
    return any(each.registry for each in manifest.shards)


def _told(watermark: str | None, manifests: Iterable[Manifest | None]) -> int | None:
    """How far the log of a registry that numbers its transactions is told."""
    numbered = any(is_numbered(manifest) for manifest in manifests if manifest is not None)
    return int(watermark) if numbered and watermark is not None and watermark.isdecimal() else None
