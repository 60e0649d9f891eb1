"""Replaying an interval: the archived outboxes of concluded runs, sent again in their order.

On a topic that is a replica (`keep: latest`) a value is sent again only while it is still the newest one; an older one
would undo what came after it. Such records are skipped and counted. Nothing is ever made up: without an archive for
the interval the replay fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest, ShardManifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.reader import OutboxShardReader
from contexture.outbox.schemas import OUTBOX
from contexture.outbox.state import State
from contexture.outbox.storage import Storage

BACKFILL_HEADER = "contexture-backfill"
SHARD_FILE = "part-00000.parquet"


def archived(outboxes: Outboxes, interval: tuple[datetime, datetime]) -> list[Manifest]:
    """Concluded outboxes whose content was received in the interval (its end excluded), in order of sequence."""
    start, end = interval
    concluded = (item.outbox for item in outboxes.all() if item.status == "concluded")
    manifests = (outboxes.manifest(name) for name in concluded)
    return [
        item
        for item in manifests
        if item.mode != "backfill" and item.received_from is not None and start <= item.received_from < end
    ]


def replay(order: StageOrder) -> Manifest:
    """Makes an outbox of what the interval's archive holds; it is `prepared`.

    Raises:
        ConfigurationError: nothing is archived for the interval.
    """
    storage = Storage(order.home)
    outboxes = Outboxes(storage, order.publication.name)
    sources = archived(outboxes, _interval(order))
    if not sources:
        raise _nothing_archived(order)
    outbox = _replay_id(order, sources)
    if storage.exists(outboxes.folder.manifest(outbox)):
        return outboxes.manifest(outbox)
    newest = _newest(storage, order)
    shards = max(len(manifest.shards) for manifest in sources)
    writers = [_ShardReplay(storage, order, outbox, shard, newest) for shard in range(shards)]
    written = [writer.run(sources) for writer in writers]
    _write_topics(storage, outboxes.folder.topics(outbox), [writer.topics for writer in writers])
    manifest = _manifest(order, outbox, sources, written, writers)
    storage.write(outboxes.folder.manifest(outbox), manifest.to_json())
    outboxes.prepared(manifest)
    return manifest


@dataclass(slots=True)
class _ShardReplay:
    storage: Storage
    order: StageOrder
    outbox: str
    shard: int
    newest: dict[bytes, int] | None
    position: int = 0
    skipped: int = 0
    bytes: int = 0
    topics: Counter[str] = field(default_factory=Counter)

    def run(self, sources: list[Manifest]) -> ShardManifest:
        name = (
            f"{Outboxes(self.storage, self.order.publication.name).folder.shard(self.outbox, self.shard)}/{SHARD_FILE}"
        )
        filesystem = self.storage.filesystem
        with (
            self.storage.replacing(name) as path,
            pq.ParquetWriter(path, OUTBOX, filesystem=filesystem, compression="zstd") as writer,
        ):
            for batch in self._batches(sources):
                writer.write_table(batch)
        size = self.order.publication.publish.transaction_records
        content = sha256(self.storage.read(name)).hexdigest() if self.position else None
        return ShardManifest(
            shard=self.shard,
            records=self.position,
            bytes=self.bytes,
            transactions=-(-self.position // size),
            file=SHARD_FILE if self.position else None,
            sha256=content,
        )

    def _batches(self, sources: list[Manifest]) -> Iterator[Any]:
        for manifest in sources:
            if self.shard < len(manifest.shards):
                reader = OutboxShardReader(self.storage, manifest, self.shard)
                for batch in reader.batches(0):
                    table = self._renumbered(self._still_newest(pa.Table.from_batches([batch]), manifest.sequence))
                    if table.num_rows:
                        yield table

    def _still_newest(self, table: Any, sequence: int) -> Any:
        if self.newest is None:
            return table
        values = table.column("value").is_valid().to_pylist()
        held = (self.newest.get(key) for key in table.column("key").to_pylist())
        kept = [last == sequence if has_value else last is None for last, has_value in zip(held, values, strict=True)]
        self.skipped += len(kept) - sum(kept)
        return table.filter(pa.array(kept, pa.bool_()))

    def _renumbered(self, table: Any) -> Any:
        positions = np.arange(self.position, self.position + table.num_rows)
        transactions = positions // self.order.publication.publish.transaction_records
        self.position += table.num_rows
        for name in ("key", "value"):
            self.bytes += pa.compute.sum(pa.compute.binary_length(table.column(name))).as_py() or 0
        self.topics.update(table.column("topic").to_pylist())
        table = table.set_column(OUTBOX.get_field_index("position"), "position", pa.array(positions))
        return table.set_column(OUTBOX.get_field_index("transaction"), "transaction", pa.array(transactions)).cast(
            OUTBOX
        )


def _interval(order: StageOrder) -> tuple[datetime, datetime]:
    if order.interval is None:
        raise ConfigurationError(
            "this backfill run has no data interval", next_step="create the backfill for a date range"
        )
    return order.interval


def _nothing_archived(order: StageOrder) -> ConfigurationError:
    start, end = _interval(order)
    return ConfigurationError(
        f"nothing of publication {order.publication.name} is archived between {start.isoformat()} and {end.isoformat()}",
        next_step=(
            "choose an interval in which a run concluded and which retention.archive_days still keeps; "
            "to send what the source holds now, run the publication in mode full instead"
        ),
        publication=order.publication.name,
    )


def _replay_id(order: StageOrder, sources: list[Manifest]) -> str:
    parts = [order.publication.name, "backfill", order.run, *(manifest.outbox for manifest in sources)]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def _newest(storage: Storage, order: StageOrder) -> dict[bytes, int] | None:
    """The sequence that last sent each key, on topics that are replicas; None where every change is kept."""
    if order.publication.topics.keep != "latest":
        return None
    state = State(storage, order.publication.name)
    table = state.table(state.pointer(), ["key", "sequence"])
    return dict(zip(table.column("key").to_pylist(), table.column("sequence").to_pylist(), strict=True))


def _write_topics(storage: Storage, path: str, counters: list[Counter[str]]) -> None:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    names = sorted(total)
    table = pa.table(
        {"topic": pa.array(names, pa.string()), "records": pa.array([total[n] for n in names], pa.int64())}
    )
    with storage.replacing(path) as target:
        pq.write_table(table, target, filesystem=storage.filesystem)


def _manifest(
    order: StageOrder,
    outbox: str,
    sources: list[Manifest],
    shards: list[ShardManifest],
    writers: list[_ShardReplay],
) -> Manifest:
    start, end = _interval(order)
    records = sum(shard.records for shard in shards)
    return Manifest(
        outbox=outbox,
        publication=order.publication.name,
        fingerprint=order.fingerprint,
        sequence=order.sequence,
        mode="backfill",
        run=order.run,
        landing_digest="",
        received_from=start,
        received_to=end,
        state_generation=0,
        watermark=None,
        headers=((BACKFILL_HEADER, start.isoformat()),),
        shards=tuple(shards),
        topics=len({name for writer in writers for name in writer.topics}),
        read=records + sum(writer.skipped for writer in writers),
        present=0,
        source_count=0,
        accepted=records,
        unchanged=0,
        quarantined={},
        quarantined_entities=0,
        warnings={},
        repeated=0,
        upserts=records,
        deletes=0,
        absent=0,
        replayed=len(sources),
        skipped_newer=sum(writer.skipped for writer in writers),
        interval=(start, end),
    )
