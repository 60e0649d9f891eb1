"""One shard of a replay: the records of archived outboxes, one after the other, renumbered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contexture.storage.layout import SHARD_FILE, PublicationFolder
from contexture.storage.manifest import Manifest, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.reader import OutboxShardReader
from contexture.storage.replayed_newest import Newest
from contexture.storage.schemas import HEADER_PREFIX, OUTBOX, STRUCTURE_OUTBOX, with_headers
from contexture.storage.storage import Storage
from contexture.storage.topic_groups import group_by_topics, needs_groups


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
        storage: where the archive is, and the new outbox.
        order: what the scheduler asked for.
        outbox: id of the new outbox.
        shard: which shard.
        parts: the shards of archived outboxes that it is made of.
        newest: what was sent last; None where every change is kept.
    """

    def __init__(
        self,
        storage: Storage,
        order: StageOrder,
        outbox: str,
        shard: int,
        parts: Sequence[int],
        newest: Newest | None,
    ) -> None:
        self._storage = storage
        self._publication = order.publication
        self._file = f"{PublicationFolder(order.publication.name).shard(outbox, shard)}/{SHARD_FILE}"
        self._shard = shard
        self._parts = parts
        self._newest = newest
        self._prefix = order.replay.topic_prefix
        self._topics: Counter[str] = Counter()
        self._of_registry = order.publication.source.kind == "sdmx"
        self._schema = STRUCTURE_OUTBOX if self._of_registry else OUTBOX
        self._last: tuple[str, int] | None = None
        self._records = self._bytes = self._deletes = self._skipped = self._transactions = 0

    def run(self, sources: Sequence[Manifest], report: Callable[[str], None] = lambda sentence: None) -> ReplayedShard:
        """Writes the shard of these outboxes, in their order; `report` is told of each."""
        self._schema = with_headers(self._schema, sorted(self._headers(sources)))
        with (
            self._storage.replacing(self._file) as path,
            pq.ParquetWriter(
                path, self._schema, filesystem=self._storage.filesystem, compression="zstd", write_page_checksum=True
            ) as writer,
        ):
            for table in self._tables(sources, report):
                writer.write_table(self._counted(table))
        if not self._of_registry and needs_groups(self._topics):
            size = self._publication.publish.transaction_records
            self._transactions = group_by_topics(self._storage, self._file, self._topics, transaction_records=size)
        return ReplayedShard(self._manifest(), self._topics, self._deletes, self._skipped)

    def _tables(self, sources: Sequence[Manifest], report: Callable[[str], None]) -> Iterator[Any]:
        for number, manifest in enumerate(sources, 1):
            report(f"shard {self._shard}: run {manifest.sequence} is replayed, {number} of {len(sources)}")
            for batch in self._batches(manifest):
                table = self._still_newest(pa.Table.from_batches([batch]), manifest.sequence)
                yield self._readdressed(self._renumbered(_with_constant_headers(table, manifest), manifest.outbox))

    def _readers(self, manifest: Manifest) -> Iterator[OutboxShardReader]:
        parts = (part for part in self._parts if part < len(manifest.shards))
        return (OutboxShardReader(self._storage, manifest, part) for part in parts)

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
            numbers = positions // self._publication.publish.transaction_records
            self._transactions = int(numbers[-1]) + 1 if len(numbers) else self._transactions
            return numbers
        return [self._next_of((outbox, number)) for number in table.column("transaction").to_pylist()]

    def _next_of(self, told: tuple[str, int]) -> int:
        if told != self._last:
            self._last = told
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
            sha256=sha256(self._storage.read(self._file)).hexdigest() if self._records else None,
        )


def _with_constant_headers(table: Any, manifest: Manifest) -> Any:
    """Records with the headers that all of their outbox have, as columns."""
    for name, value in manifest.headers:
        column = pa.repeat(pa.scalar(value.encode(), pa.binary()), table.num_rows)
        table = table.append_column(f"{HEADER_PREFIX}{name}", column)
    return table
