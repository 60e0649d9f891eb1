"""Replaying an interval: the archived outboxes of concluded runs, sent again in their order.

On a topic that is a replica (`keep: latest`) a value is sent again only while it is still the newest one; an older one
would undo what came after it. Such records are skipped and counted. Nothing is ever made up: without an archive for
the interval the replay fails.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.replayed_shard import ReplayedShard, ShardReplay
from contexture.outbox.state import State
from contexture.outbox.storage import Storage

BACKFILL_HEADER = "contexture-backfill"


class NothingArchivedError(ConfigurationError):
    """The interval has no archive."""


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
        NothingArchivedError: nothing is archived for the interval.
        ConfigurationError: there is no interval.
    """
    storage = Storage(order.home)
    outboxes = Outboxes(storage, order.publication.name)
    sources = archived(outboxes, _interval(order))
    if not sources:
        raise _nothing_archived(order)
    outbox = _replay_id(order, sources)
    if storage.exists(outboxes.folder.manifest(outbox)):
        manifest = outboxes.manifest(outbox)
    else:
        manifest = _replayed(storage, order, outbox, sources)
        storage.write(outboxes.folder.manifest(outbox), manifest.to_json())
    outboxes.prepared(manifest)
    return manifest


def _replayed(storage: Storage, order: StageOrder, outbox: str, sources: list[Manifest]) -> Manifest:
    newest = _newest(storage, order)
    shards = range(max(len(manifest.shards) for manifest in sources))
    written = [ShardReplay(storage, order, outbox, shard, newest).run(sources) for shard in shards]
    topics = sum((shard.topics for shard in written), start=Counter())
    _write_topics(storage, PublicationFolder(order.publication.name).topics(outbox), topics)
    return _manifest(order, outbox, written, replayed=len(sources), topics=len(topics))


def _interval(order: StageOrder) -> tuple[datetime, datetime]:
    if order.interval is None:
        raise ConfigurationError(
            "this backfill run has no data interval", next_step="create the backfill for a date range"
        )
    return order.interval


def _nothing_archived(order: StageOrder) -> NothingArchivedError:
    start, end = _interval(order)
    return NothingArchivedError(
        f"nothing of {order.publication.name} is archived between {start.isoformat()} and {end.isoformat()}",
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


def _write_topics(storage: Storage, path: str, topics: Counter[str]) -> None:
    names = sorted(topics)
    counts = [topics[name] for name in names]
    table = pa.table({"topic": pa.array(names, pa.string()), "records": pa.array(counts, pa.int64())})
    with storage.replacing(path) as target:
        pq.write_table(table, target, filesystem=storage.filesystem)


def _manifest(order: StageOrder, outbox: str, shards: list[ReplayedShard], *, replayed: int, topics: int) -> Manifest:
    start, end = _interval(order)
    records = sum(shard.manifest.records for shard in shards)
    deletes = sum(shard.deletes for shard in shards)
    skipped = sum(shard.skipped for shard in shards)
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
        shards=tuple(shard.manifest for shard in shards),
        topics=topics,
        read=records + skipped,
        present=0,
        source_count=0,
        accepted=records,
        unchanged=0,
        quarantined={},
        quarantined_entities=0,
        warnings={},
        repeated=0,
        upserts=records - deletes,
        deletes=deletes,
        absent=0,
        replayed=replayed,
        skipped_newer=skipped,
        interval=(start, end),
    )
