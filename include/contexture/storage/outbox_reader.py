"""Reading the records of an outbox: one shard in its order, in pieces that fit into memory whatever a record weighs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from contexture.errors import DefectError
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import Manifest, RegistryPart, ShardManifest
from contexture.storage.paths import PublicationPaths
from contexture.storage.schemas import HEADER_PREFIX

ROWS_PER_BATCH = 10_000
BYTES_PER_BATCH = 33_554_432
"""How much of keys and values a batch holds about; a record that is larger comes alone."""


class OutboxShardReader:
    """The records of one shard as Arrow record batches; memory does not grow with the shard."""

    def __init__(self, home: FileTree, manifest: Manifest, shard: int, *, rows_per_batch: int = ROWS_PER_BATCH) -> None:
        self.outbox_id = manifest.outbox
        self.sequence = manifest.sequence
        self.shard = shard
        self.headers = tuple((name, value.encode()) for name, value in manifest.headers)
        # What was read outside of the log is sent whole, or not at all when something later was sent.
        self.flush = manifest.flush or manifest.retried is not None
        self._rows_per_batch = rows_per_batch
        self._described = _described(manifest, shard)
        self._folder = StoredFolder(home, PublicationPaths(manifest.publication).shard(manifest.outbox, shard))

    @property
    def records(self) -> int:
        return self._described.records

    @property
    def bytes(self) -> int:
        """Bytes of keys and values, before compression."""
        return self._described.bytes

    @property
    def registry(self) -> tuple[RegistryPart, ...]:
        """The registry transaction of each Kafka transaction, in order."""
        return self._described.registry

    def varying_headers(self) -> tuple[str, ...]:
        """The headers that have a column of their own."""
        if self._described.file is None:
            return ()
        with self._folder.translate_read_errors(self._described.file):
            schema = self._folder.schema(self._described.file)
        return tuple(name.removeprefix(HEADER_PREFIX) for name in schema.names if name.startswith(HEADER_PREFIX))

    def batches(self, from_position: int) -> Iterator[Any]:
        """Record batches in order, the first row being `from_position`.

        Raises:
            DefectError: the file's positions are not dense.
            RetriableError: the storage failed.
        """
        if self._described.file is None or from_position >= self.records:
            return
        with (
            self._folder.translate_read_errors(self._described.file),
            self._folder.open_table(self._described.file, pre_buffer=False, page_checksum_verification=True) as parquet,
        ):
            yield from self._from(parquet, from_position)

    def _from(self, parquet: Any, from_position: int) -> Iterator[Any]:
        first_group, position = _row_group_of(parquet.metadata, from_position)
        for batch in self._batches(parquet, range(first_group, parquet.metadata.num_row_groups)):
            skip = max(0, from_position - position)
            position += batch.num_rows
            if skip < batch.num_rows:
                yield self._checked(batch.slice(skip), position - batch.num_rows + skip)

    def _batches(self, parquet: Any, groups: range) -> Iterator[Any]:
        """The rows of row groups; neighbours whose rows are of one size are read as one."""
        for rows, run in groupby(groups, lambda group: self._rows_of(parquet.metadata, group)):
            yield from parquet.iter_batches(batch_size=rows, row_groups=list(run))

    def _rows_of(self, metadata: Any, group: int) -> int:
        """How many rows of a row group make a batch: fewer where they are large."""
        described = metadata.row_group(group)
        row_bytes = described.total_byte_size // max(1, described.num_rows)
        return max(1, min(self._rows_per_batch, BYTES_PER_BATCH // max(1, int(row_bytes))))

    def _checked(self, batch: Any, expected: int) -> Any:
        found = batch.column("position")[0].as_py()
        if found != expected:
            raise DefectError(
                f"position {found} is where {expected} should be, in {self._folder.path}",
                next_step=f"abandon the outbox and report this: contexture outbox abandon {self.outbox_id} --reason …",
                outbox=self.outbox_id,
                shard=self.shard,
            )
        return batch


def _described(manifest: Manifest, shard: int) -> ShardManifest:
    for item in manifest.shards:
        if item.shard == shard:
            return item
    raise DefectError(
        f"outbox {manifest.outbox} has no shard {shard}, only {len(manifest.shards)} shards", next_step="report this"
    )


def _row_group_of(metadata: Any, position: int) -> tuple[int, int]:
    """The row group that holds a position, and the position that the group starts with."""
    start = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if position < start + rows:
            return group, start
        start += rows
    return metadata.num_row_groups, start
