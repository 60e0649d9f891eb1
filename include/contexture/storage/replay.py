"""Replaying an interval: the archived outboxes of concluded runs, sent again in their order.

On a topic that is a replica (`keep: latest`) a value is sent again only while it is still the newest one; an older one
would undo what came after it. Such records are skipped and counted, unless they go to other topics or somebody has
confirmed it. Nothing is ever made up: without an archive for the interval the replay fails, and so it does with half of
one unless that is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.errors import ConfigurationError
from contexture.storage.archive import Archived, archive_of
from contexture.storage.layout import PublicationFolder
from contexture.storage.lifecycle import Outboxes
from contexture.storage.manifest import Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.replay_topics import check_topics
from contexture.storage.replayed_newest import newest_sent
from contexture.storage.replayed_shard import ReplayedShard, ShardReplay
from contexture.storage.state import State
from contexture.storage.storage import Storage

BACKFILL_HEADER = "contexture-backfill"
_SHOWN: Final = 10

Report = Callable[[str], None]
"""Takes one sentence for the log; never data."""


class NothingArchivedError(ConfigurationError):
    """The interval has no archive."""


class NoLogError(ConfigurationError):
    """The registry keeps no log that could be read."""


class PartlyArchivedError(ConfigurationError):
    """Something of the interval is missing, and nobody has said that the rest is enough."""


def found(order: StageOrder) -> Archived:
    """What is archived of the order's interval.

    Raises:
        ConfigurationError: there is no interval.
    """
    return archive_of(Outboxes(Storage(order.home), order.publication.name), _interval(order))


def replay(order: StageOrder, report: Report = lambda sentence: None) -> Manifest:
    """Makes an outbox of what the interval's archive holds; it is `prepared`.

    Args:
        order: what the scheduler asked for.
        report: is told of each run that is replayed.

    Raises:
        NothingArchivedError: nothing is archived for the interval.
        PartlyArchivedError: runs of it are missing, and the order refuses that.
        ConfigurationError: there is no interval, or its records can't go where they are to go.
    """
    storage = Storage(order.home)
    outboxes = Outboxes(storage, order.publication.name)
    archive = found(order)
    if not archive.manifests:
        raise _nothing_archived(order, archive.missing)
    check_missing(order, archive.missing)
    outbox = _replay_id(order, archive)
    if storage.exists(outboxes.folder.manifest(outbox)):
        manifest = outboxes.manifest(outbox)
    else:
        manifest = _replayed(storage, order, outbox, archive, report)
        storage.write(outboxes.folder.manifest(outbox), manifest.to_json())
    outboxes.prepared(manifest)
    return manifest


def check_missing(order: StageOrder, missing: tuple[str, ...]) -> None:
    """Refuses an interval that lacks something, unless the order has it sent all the same.

    Raises:
        PartlyArchivedError: it does not.
    """
    if missing and order.replay.incomplete == "refuse":
        start, end = _interval(order)
        raise PartlyArchivedError(
            f"between {start.isoformat()} and {end.isoformat()} {order.publication.name} lacks {listed(missing)}",
            next_step="leave this interval out, or send what there is: backfill again with replay_incomplete: send",
            publication=order.publication.name,
        )


def listed(missing: Iterable[str]) -> str:
    """What is missing, in one line that stays readable."""
    every = list(missing)
    rest = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return "; ".join(islice(every, _SHOWN)) + rest


def backfill_headers(order: StageOrder, constant: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """What all records of an outbox say of themselves, those of a backfill also that they are of one."""
    if order.mode != "backfill" or order.interval is None:
        return constant
    return (*constant, (BACKFILL_HEADER, order.interval[0].isoformat()))


def _replayed(storage: Storage, order: StageOrder, outbox: str, archive: Archived, report: Report) -> Manifest:
    sources = archive.manifests
    # Before what is held is read: of a run that is concluded meanwhile, its records are looked at in the end.
    generation = State(storage, order.publication.name).pointer().generation
    newest = newest_sent(storage, order)
    written = [
        ShardReplay(storage, order, outbox, shard, parts, newest).run(sources, report)
        for shard, parts in enumerate(_parts(sources))
    ]
    topics = sum((shard.topics for shard in written), start=Counter())
    if order.replay.topic_prefix:
        check_topics(storage, order.publication.name, order.replay.topic_prefix, topics)
    _write_topics(storage, PublicationFolder(order.publication.name).topics(outbox), topics)
    return _manifest(order, outbox, written, archive, topics=len(topics), generation=generation)


def _parts(sources: Sequence[Manifest]) -> Iterator[tuple[int, ...]]:
    """The shards of the archived outboxes that each shard of the replay is made of.

    Their number may have been changed between two runs. Then a key is in one shard of the one and in another of the
    other, and only a single sender keeps its records in order.
    """
    counts = {len(manifest.shards) for manifest in sources}
    every = tuple(range(max(counts)))
    return ((shard,) for shard in every) if len(counts) == 1 else iter((every,))


def _interval(order: StageOrder) -> tuple[datetime, datetime]:
    if order.interval is None:
        raise ConfigurationError(
            "this backfill run has no data interval", next_step="create the backfill for a date range"
        )
    return order.interval


def _nothing_archived(order: StageOrder, missing: tuple[str, ...]) -> NothingArchivedError:
    start, end = _interval(order)
    lacking = f" (missing: {listed(missing)})" if missing else ""
    return NothingArchivedError(
        f"nothing of {order.publication.name} is archived between {start.isoformat()} and {end.isoformat()}{lacking}",
        next_step=(
            "choose an interval in which a run concluded and which retention.archive_days still keeps; "
            "to send what the source holds now, run the publication in mode full instead"
        ),
        publication=order.publication.name,
    )


def _replay_id(order: StageOrder, archive: Archived) -> str:
    how = [order.replay.topic_prefix, str(order.replay.sends_outdated)] if order.replay.sends_outdated else []
    parts = [order.publication.name, "backfill", order.run, *how, *(manifest.outbox for manifest in archive.manifests)]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def _write_topics(storage: Storage, path: str, topics: Counter[str]) -> None:
    names = sorted(topics)
    counts = [topics[name] for name in names]
    table = pa.table({"topic": pa.array(names, pa.string()), "records": pa.array(counts, pa.int64())})
    with storage.replacing(path) as target:
        pq.write_table(table, target, filesystem=storage.filesystem)


def _manifest(
    order: StageOrder, outbox: str, shards: list[ReplayedShard], archive: Archived, *, topics: int, generation: int
) -> Manifest:
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
        state_generation=generation,
        watermark=None,
        headers=backfill_headers(order, ()),
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
        replayed=len(archive.manifests),
        skipped_newer=skipped,
        interval=(start, end),
        replayed_from="archive",
        missing=archive.missing,
        topic_prefix=order.replay.topic_prefix,
        sends_outdated=order.replay.sends_outdated,
    )
