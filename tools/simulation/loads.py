"""What is sent in a schedule: small outboxes, each record of which is distinguishable from every other."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from contexture.sending.testing import MemoryShard, OutboxRow, record_batch
from contexture.storage.manifests import Manifest, ShardManifest

if TYPE_CHECKING:
    import pyarrow as pa

PUBLICATION = "simulated"
TOPICS = ("data.a", "data.b")
_KEYS = 6


@dataclass(frozen=True)
class Shard(MemoryShard):
    """A shard whose rows are put into columns once."""

    bytes: int = 0

    def batches(self, from_position: int) -> Iterator[pa.RecordBatch]:
        """Yields the rows from a position on."""
        if from_position < self.records:
            yield _columns(self).slice(from_position)


@dataclass(frozen=True)
class Load:
    """An outbox.

    Attributes:
        manifest: what it says of itself, as far as senders look at it.
        shards: its records.
        values: each record's value, with the shard, the transaction and the position it has there.
    """

    manifest: Manifest
    shards: tuple[Shard, ...]
    values: dict[bytes, tuple[int, int, int]]

    @property
    def used(self) -> list[int]:
        """The shards that have records."""
        return [each.shard for each in self.shards if each.records]


_batches: dict[tuple[str, int, int], pa.RecordBatch] = {}


def _columns(shard: Shard) -> pa.RecordBatch:
    known = (shard.outbox_id, shard.shard, shard.records)
    if known not in _batches:
        _batches[known] = record_batch(shard.rows, 0)
    return _batches[known]


@lru_cache(maxsize=256)
def load(sequence: int, shards: int, records: int, transaction: int) -> Load:
    """Returns an outbox of so many records; equal ones have the same id."""
    outbox = f"o{sequence}-{shards}-{records}-{transaction}"
    rows: list[list[OutboxRow]] = [[] for _ in range(shards)]
    values: dict[bytes, tuple[int, int, int]] = {}
    for number in range(records):
        key = b"k%d" % (number * 5 % _KEYS)
        shard = zlib.crc32(key) % shards
        position = len(rows[shard])
        value = f"{outbox}/{shard}/{position}".encode()
        rows[shard].append(OutboxRow(TOPICS[number % 2], key, value, transaction=position // transaction))
        values[value] = (shard, position // transaction, position)
    made = tuple(
        Shard(tuple(each), outbox_id=outbox, sequence=sequence, shard=number) for number, each in enumerate(rows)
    )
    # The members that senders look at.
    members: dict[str, Any] = {
        "outbox": outbox,
        "publication": PUBLICATION,
        "sequence": sequence,
        "mode": "full",
        "run": f"run-{sequence}",
        "interval": None,
        "shards": tuple(
            ShardManifest(
                shard=each.shard,
                records=each.records,
                bytes=0,
                transactions=-(-each.records // transaction),
                file=None,
                sha256=None,
            )
            for each in made
        ),
    }
    return Load(Manifest.model_construct(**members), made, values)
