"""Replaying an interval: the archived outboxes of concluded runs, sent again in their order.

On a topic that is a replica (`keep: latest`) a value is sent again only while it is still the newest one; an older one
would undo what came after it. Such records are skipped and counted, unless they go to other topics or a person has
confirmed it. Nothing is ever made up: without an archive for the interval the replay fails, and so it does with half of
one unless that is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import islice
from sys import intern
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.publications import SizedPublish
from contexture.records.topics.collisions import metric_name
from contexture.records.topics.encodings import TopicNameError, check_legal
from contexture.storage.archive import ArchiveCoverage
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.publication_store import SHARD_FILE, PublicationStore
from contexture.storage.schemas import HEADER_PREFIX, OUTBOX, STRUCTURE_OUTBOX, with_headers
from contexture.storage.state import State
from contexture.storage.topic_order import group_by_topics, needs_groups

_OWN_TOPICS: Final = "contexture.ledger."


def check_topics(store: PublicationStore, prefix: str, topics: Iterable[str]) -> None:
    """Sees that the topics of a replay can be made and are filled by no live runs.

    Args:
        store: of the publication that is replayed; its home has the state of all others.
        prefix: what its topics begin with.
        topics: with the prefix.

    Raises:
        ConfigurationError: a name is too long, a ledger's, or that of a topic which live runs of some
            publication in the storage fill.
    """
    live: dict[str, str] | None = None
    for topic in topics:
        try:
            check_legal(topic)
        except TopicNameError as error:
            raise _unusable(prefix, f"{error.message}") from error
        if topic.startswith(_OWN_TOPICS):
            raise _unusable(prefix, f"{topic} is the name of a ledger")
        live = _live(store) if live is None else live
        owner = live.get(metric_name(topic))
        if owner is not None:
            raise _unusable(prefix, f"live runs of {owner} fill {topic}")


def _live(store: PublicationStore) -> dict[str, str]:
    """Whose each topic is; the publication itself where it shares one with others."""
    return {metric_name(topic): each.name for each in (*store.others(), store) for topic in _filled(each.state)}


def _filled(state: State) -> list[str]:
    pointer = state.pointer()
    if not pointer.files:
        return []
    return list(pc.unique(pc.list_flatten(state.table(pointer, ["topics"]).column("topics"))).to_pylist())


def _unusable(prefix: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"a replay cannot go to topics that begin with {prefix!r}: {reason}", next_step="choose another topic_prefix"
    )


Newest = dict[tuple[str, bytes | None], int]
"""The sequence of the outbox that last sent a value of a key to a topic; without keys whose last record is a tombstone.

A key alone would not do: with `key: id`, say, all attributes of an entity have one key, each in a topic of its own.
"""


def newest_sent(store: PublicationStore, order: StageOrder) -> Newest | None:
    """What a publication's topics hold last, where they are replicas; None where nothing is left out for it."""
    if order.publication.topics.keep != "latest" or order.replay.sends_outdated:
        return None
    state = store.state
    newest: Newest = {}
    for piece in state.reader(state.pointer()).pieces(["topics", "key", "sequence"]):
        columns = (piece.column(name).to_pylist() for name in ("topics", "key", "sequence"))
        for topics, key, sequence in zip(*columns, strict=True):
            newest |= {(intern(topic), key): sequence for topic in topics}
    return newest


@dataclass(frozen=True, slots=True)
class ReplayedShard:
    """What one shard of a replay holds; `skipped` counts records that a newer one has made outdated."""

    manifest: ShardManifest
    topics: Counter[str]
    deletes: int
    skipped: int


class ShardReplay:
    """Writes one shard of a replay.

    Args:
        store: where the archive is, and the new outbox.
        order: what the scheduler asked for.
        outbox: id of the new outbox.
        shard: which shard.
        parts: the shards of archived outboxes that it is made of.
        newest: what was sent last; None where every change is kept.
    """

    def __init__(
        self,
        store: PublicationStore,
        order: StageOrder,
        outbox: str,
        shard: int,
        parts: Sequence[int],
        newest: Newest | None,
    ) -> None:
        self._store = store
        self._folder = store.outbox(outbox).shard(shard)
        self._shard = shard
        self._parts = parts
        self._newest = newest
        self._prefix = order.replay.topic_prefix
        self._topics: Counter[str] = Counter()
        publish = order.publication.publish
        self._transaction_records = publish.transaction_records if isinstance(publish, SizedPublish) else 0
        self._of_registry = order.publication.source.has_log
        self._schema = STRUCTURE_OUTBOX if self._of_registry else OUTBOX
        self._last: tuple[str, int] | None = None
        self._records = self._bytes = self._deletes = self._skipped = self._transactions = 0

    def run(self, sources: Sequence[Manifest], report: ProgressCallback = lambda sentence: None) -> ReplayedShard:
        """Writes the shard of these outboxes, in their order; `report` receives a sentence for each."""
        self._schema = with_headers(self._schema, sorted(self._headers(sources)))
        with self._folder.table_writer(SHARD_FILE, self._schema, write_page_checksum=True) as writer:
            for table in self._tables(sources, report):
                writer.write_table(self._counted(table))
        if not self._of_registry and needs_groups(self._topics):
            self._transactions = group_by_topics(
                self._folder, SHARD_FILE, self._topics, transaction_records=self._transaction_records
            )
        return ReplayedShard(self._manifest(), self._topics, self._deletes, self._skipped)

    def _tables(self, sources: Sequence[Manifest], report: ProgressCallback) -> Iterator[Any]:
        for number, manifest in enumerate(sources, 1):
            report(f"shard {self._shard}: run {manifest.sequence} is replayed, {number} of {len(sources)}")
            for batch in self._batches(manifest):
                table = self._still_newest(pa.Table.from_batches([batch]), manifest.sequence)
                yield self._readdressed(self._renumbered(_with_constant_headers(table, manifest), manifest.outbox))

    def _readers(self, manifest: Manifest) -> Iterator[OutboxShardReader]:
        parts = (part for part in self._parts if part < len(manifest.shards))
        return (self._store.reader(manifest, part) for part in parts)

    def _batches(self, manifest: Manifest) -> Iterator[Any]:
        for reader in self._readers(manifest):
            yield from reader.batches(0)

    def _headers(self, sources: Sequence[Manifest]) -> set[str]:
        """The headers of these outboxes, those that all records of one have among them: the next may lack them."""
        found = {name for manifest in sources for name, _ in manifest.headers}
        for manifest in sources:
            found.update(name for reader in self._readers(manifest) for name in reader.varying_headers())
        return {name for name in found if f"{HEADER_PREFIX}{name}" not in self._schema.names}

    def _still_newest(self, table: Any, sequence: int) -> Any:
        if self._newest is None:
            return table
        values = table.column("value").is_valid().to_pylist()
        topics, keys = table.column("topic").cast(pa.string()).to_pylist(), table.column("key").to_pylist()
        held = map(self._newest.get, zip(topics, keys, strict=True))
        kept = [last == sequence if has_value else last is None for last, has_value in zip(held, values, strict=True)]
        self._skipped += len(kept) - sum(kept)
        return table.filter(pa.array(kept, pa.bool_()))

    def _readdressed(self, table: Any) -> Any:
        if not self._prefix:
            return table
        place = table.schema.get_field_index("topic")
        topics = pc.binary_join_element_wise(self._prefix, table.column("topic").cast(pa.string()), "")
        return table.set_column(place, "topic", topics).cast(self._schema)

    def _renumbered(self, table: Any, outbox: str) -> Any:
        positions = np.arange(self._records, self._records + table.num_rows)
        transactions = self._transactions_of(table, outbox, positions)
        for name, values in {"position": positions, "transaction": transactions}.items():
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.int64()))
        for field in self._schema:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table.select(self._schema.names).cast(self._schema)

    def _transactions_of(self, table: Any, outbox: str, positions: Any) -> Any:
        """New numbers of transactions; those of a registry stay what they were, for each is one of its own."""
        if not self._of_registry:
            numbers = positions // self._transaction_records
            self._transactions = int(numbers[-1]) + 1 if len(numbers) else self._transactions
            return numbers
        return [self._next_of((outbox, number)) for number in table.column("transaction").to_pylist()]

    def _next_of(self, transaction: tuple[str, int]) -> int:
        if transaction != self._last:
            self._last = transaction
            self._transactions += 1
        return self._transactions - 1

    def _counted(self, table: Any) -> Any:
        self._records += table.num_rows
        self._deletes += table.column("value").null_count
        self._topics.update(table.column("topic").to_pylist())
        self._bytes += sum(pc.sum(pc.binary_length(table.column(name))).as_py() or 0 for name in ("key", "value"))
        return table

    def _manifest(self) -> ShardManifest:
        return ShardManifest(
            shard=self._shard,
            records=self._records,
            bytes=self._bytes,
            transactions=self._transactions,
            file=SHARD_FILE if self._records else None,
            sha256=sha256(self._folder.read(SHARD_FILE)).hexdigest() if self._records else None,
        )


def _with_constant_headers(table: Any, manifest: Manifest) -> Any:
    """Records with the headers that all of their outbox have, as columns."""
    for name, value in manifest.headers:
        column = pa.repeat(pa.scalar(value.encode(), pa.binary()), table.num_rows)
        table = table.append_column(f"{HEADER_PREFIX}{name}", column)
    return table


BACKFILL_HEADER = "contexture-backfill"
_SHOWN: Final = 10


class NothingArchivedError(ConfigurationError):
    """The interval has no archive."""


class NoLogError(ConfigurationError):
    """The registry keeps no log that could be read."""


class PartlyArchivedError(ConfigurationError):
    """Something of the interval is missing, and no one has said that the rest is enough."""


def find_archived_outboxes(store: PublicationStore, order: StageOrder) -> ArchiveCoverage:
    """Returns what is archived of the order's interval.

    Raises:
        ConfigurationError: there is no interval.
    """
    return store.archive.coverage(_interval(order))


def replay(store: PublicationStore, order: StageOrder, report: ProgressCallback = lambda sentence: None) -> Manifest:
    """Makes an outbox of what the interval's archive has; it is `prepared`.

    Args:
        store: of the publication.
        order: what the scheduler requested.
        report: receives a sentence for each run that is replayed.

    Raises:
        NothingArchivedError: nothing is archived for the interval.
        PartlyArchivedError: runs of it are missing, and the order refuses that.
        ConfigurationError: there is no interval, or its records cannot go to their topics.
    """
    archive = find_archived_outboxes(store, order)
    if not archive.manifests:
        raise _nothing_archived(order, archive.missing)
    check_missing(order, archive.missing)
    outbox = _replay_id(order, archive)
    if store.outbox(outbox).has_manifest():
        manifest = store.outboxes.manifest(outbox)
    else:
        manifest = _replayed(store, order, outbox, archive, report)
        store.outbox(outbox).write_manifest(manifest)
    store.outboxes.prepared(manifest)
    return manifest


def check_missing(order: StageOrder, missing: tuple[str, ...]) -> None:
    """Refuses an interval that lacks something, unless the order has it sent all the same.

    Raises:
        PartlyArchivedError: it does not.
    """
    if missing and order.replay.incomplete == "refuse":
        start, end = _interval(order)
        raise PartlyArchivedError(
            f"between {start.isoformat()} and {end.isoformat()} {order.publication.name} lacks {list_missing(missing)}",
            next_step="leave this interval out, or send what exists: backfill again with replay_incomplete: send",
            publication=order.publication.name,
        )


def list_missing(missing: Iterable[str]) -> str:
    """What is missing, in one line that stays readable."""
    every = list(missing)
    rest = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return "; ".join(islice(every, _SHOWN)) + rest


def backfill_headers(order: StageOrder, constant: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """What all records of an outbox say of themselves, those of a backfill also that they are of one."""
    if order.mode != "backfill" or order.interval is None:
        return constant
    return (*constant, (BACKFILL_HEADER, order.interval[0].isoformat()))


def _replayed(
    store: PublicationStore, order: StageOrder, outbox: str, archive: ArchiveCoverage, report: ProgressCallback
) -> Manifest:
    sources = archive.manifests
    # Before what is held is read: of a run that is concluded meanwhile, its records are looked at in the end.
    generation = store.state.pointer().generation
    newest = newest_sent(store, order)
    written = [
        ShardReplay(store, order, outbox, shard, parts, newest).run(sources, report)
        for shard, parts in enumerate(_parts(sources))
    ]
    topics = sum((shard.topics for shard in written), start=Counter())
    if order.replay.topic_prefix:
        check_topics(store, order.replay.topic_prefix, topics)
    store.outbox(outbox).write_topics(_topic_table(topics))
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
    lacking = f" (missing: {list_missing(missing)})" if missing else ""
    return NothingArchivedError(
        f"nothing of {order.publication.name} is archived between {start.isoformat()} and {end.isoformat()}{lacking}",
        next_step=(
            "choose an interval in which a run concluded and whose archive retention.archive_days has not deleted "
            "yet; to send what the source holds now, run the publication in mode full instead"
        ),
        publication=order.publication.name,
    )


def _replay_id(order: StageOrder, archive: ArchiveCoverage) -> str:
    how = [order.replay.topic_prefix, str(order.replay.sends_outdated)] if order.replay.sends_outdated else []
    parts = [order.publication.name, "backfill", order.run, *how, *(manifest.outbox for manifest in archive.manifests)]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def _topic_table(topics: Counter[str]) -> pa.Table:
    names = sorted(topics)
    counts = [topics[name] for name in names]
    return pa.table({"topic": pa.array(names, pa.string()), "records": pa.array(counts, pa.int64())})


def _manifest(
    order: StageOrder,
    outbox: str,
    shards: list[ReplayedShard],
    archive: ArchiveCoverage,
    *,
    topics: int,
    generation: int,
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
