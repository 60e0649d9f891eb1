"""What the senders send: small outboxes whose every record is distinguishable from every other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from contexture.sending.testing import MemoryShard, OutboxRow
from contexture.storage.manifests import RegistryPart

MARK = "fault-mark"
"""The header that names a record."""

_KEYS = 7
# Each so many records of a shard, one is a tombstone.
_TOMBSTONES = 5
_PACE_SECONDS = 0.01
_PACED_ROWS = 3


@dataclass(frozen=True)
class PacedShard(MemoryShard):
    """A shard whose batches are few rows each and come slowly, so that a transaction is under way for a while."""

    def batches(self, from_position: int) -> Iterator[pa.RecordBatch]:
        """As of any shard, with 10 ms before each batch."""
        for batch in super().batches(from_position):
            time.sleep(_PACE_SECONDS)
            yield batch


@dataclass(frozen=True, slots=True)
class Expected:
    """A record that is sent.

    Attributes:
        mark: its name.
        topic, key, value: what it holds.
        transaction: of which transaction it is; those of one are seen together.
        lanes: within each of them, and one partition, records come in the order of their list.
    """

    mark: bytes
    topic: str
    key: bytes
    value: bytes | None
    transaction: tuple[object, ...]
    lanes: tuple[object, ...]

    @property
    def line(self) -> object:
        """Whose transactions follow each other: those of one shard of an outbox, or of a registry."""
        return self.lanes[-1]


@dataclass(frozen=True, slots=True)
class Load:
    """An outbox: its shards, and the records in sending order."""

    shards: tuple[MemoryShard, ...]
    records: tuple[Expected, ...]


def context_load(
    topics: Sequence[str], *, outbox: str, sequence: int = 1, shards: int = 1, records: int = 80, transaction: int = 10
) -> Load:
    """Entities of a context broker: a key's records are of one shard and alternate between topics.

    Args:
        topics: where to.
        outbox: its id.
        sequence: its place in the publication's order.
        shards: how many it has.
        records: of each shard.
        transaction: records in each transaction.
    """
    rows: list[list[OutboxRow]] = [[] for _ in range(shards)]
    listed: list[Expected] = []
    for number in range(records * shards):
        key = number % (_KEYS * shards)
        shard = key % shards
        position = len(rows[shard])
        place = position // transaction
        mark = f"{outbox}/{shard}/{place}/{position}".encode()
        name, topic = b"entity-%d" % key, topics[number // 3 % len(topics)]
        value = None if position % _TOMBSTONES == _TOMBSTONES - 1 else b"value of " + mark
        rows[shard].append(OutboxRow(topic, name, value, transaction=place, headers=((MARK, mark),)))
        lanes = (name, (outbox, shard))
        listed.append(Expected(mark, topic, name, value, (outbox, shard, place), lanes))
    made = tuple(
        MemoryShard(tuple(each), outbox_id=outbox, sequence=sequence, shard=number, batch_rows=17)
        for number, each in enumerate(rows)
    )
    return Load(made, tuple(listed))


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """One Kafka transaction of a registry publication: what a registry transaction changed, or what it deleted."""

    id: int
    structures: tuple[int, ...]
    deletions: bool = False

    def expected(self, topic: str) -> list[Expected]:
        """Returns its records, which are the same from every sender."""
        return [
            Expected(
                mark=b"%d/%d/%d" % (self.id, self.deletions, number),
                topic=topic,
                key=b"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:CL_%d(1.0)" % structure,
                value=None if self.deletions else b"as of %d" % self.id,
                transaction=(self.id, self.deletions),
                lanes=("log",),
            )
            for number, structure in enumerate(self.structures)
        ]


def paced(load: Load) -> Load:
    """Returns the same outbox with shards that are read slowly."""
    shards = tuple(
        PacedShard(
            each.rows, outbox_id=each.outbox_id, sequence=each.sequence, shard=each.shard, batch_rows=_PACED_ROWS
        )
        for each in load.shards
    )
    return Load(shards, load.records)


def registry_log(last: int) -> list[RegistryChange]:
    """Returns what a registry did; each third transaction deletes too."""
    log: list[RegistryChange] = []
    for id in range(1, last + 1):
        log.append(RegistryChange(id, tuple(10 * (id % 5) + number for number in range(2 + id % 3))))
        if id % 3 == 0:
            log.append(RegistryChange(id, (10 * ((id - 1) % 5),), deletions=True))
    return log


def registry_load(topic: str, log: Sequence[RegistryChange], *, outbox: str, sequence: int = 1) -> Load:
    """Returns a stretch of a registry's log as an outbox of one shard."""
    sent = [each.expected(topic) for each in log]
    rows = [
        OutboxRow(topic, record.key, record.value, transaction=number, headers=((MARK, record.mark),))
        for number, records in enumerate(sent)
        for record in records
    ]
    firsts = [0, *accumulate(map(len, sent))]
    parts = tuple(
        RegistryPart(transaction=number, first_position=firsts[number], id=each.id, deletions=each.deletions)
        for number, each in enumerate(log)
    )
    shard = MemoryShard(tuple(rows), outbox_id=outbox, sequence=sequence, batch_rows=5, registry=parts)
    return Load((shard,), tuple(record for records in sent for record in records))
