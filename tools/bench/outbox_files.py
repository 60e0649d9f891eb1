"""An outbox as prepare leaves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import HEADER_PREFIX, OUTBOX, with_headers
from tools.bench.loads import ENTITY_BYTES, Load, values

PUBLICATION = "bench"
TOPIC = "bench.cars"
TRANSACTION_RECORDS = 50_000
ROW_GROUP = 100_000
_ROW_GROUP_BYTES = 60_000_000
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

Row = tuple[str, bytes | None, bytes]
"""Topic, key and value."""


def write_outbox(home: Path | str, load: Load) -> None:
    """An outbox to one topic, without keys, in transactions of TRANSACTION_RECORDS."""
    rows: Iterator[Row] = ((TOPIC, None, value) for value in values(load.value_bytes))
    each = load.records // load.shards
    write_shards(
        home,
        load.outbox,
        [islice(rows, each) for _ in range(load.shards)],
        headers=load.headers,
        value_bytes=load.value_bytes,
    )


def write_shards(
    home: Path | str,
    outbox: str,
    shards: Sequence[Iterable[Row]],
    *,
    headers: int = 0,
    value_bytes: int = ENTITY_BYTES,
    moment: datetime = NOON,
) -> None:
    """An outbox with these records in each shard, in this order."""
    records, form = Home(str(home)).publication(PUBLICATION).outbox(outbox), _Form(headers, value_bytes, moment)
    written = [_shard(records.shard(number), number, iter(rows), form) for number, rows in enumerate(shards)]
    records.write_manifest(_manifest(outbox, written))


@dataclass(frozen=True, slots=True)
class _Form:
    headers: int
    value_bytes: int
    moment: datetime


def _shard(folder: StoredFolder, shard: int, rows: Iterator[Row], form: _Form) -> ShardManifest:
    names = [f"ce_attribute{number}" for number in range(form.headers)]
    schema, size, first = with_headers(OUTBOX, names), min(ROW_GROUP, _ROW_GROUP_BYTES // form.value_bytes), 0
    with (
        folder.write_atomically(SHARD_FILE) as path,
        pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer,
    ):
        while chosen := list(islice(rows, size)):
            writer.write_table(_table(first, chosen, schema, form.moment), row_group_size=size)
            first += len(chosen)
    transactions = -(-first // TRANSACTION_RECORDS)
    return ShardManifest(
        shard=shard,
        records=first,
        bytes=first * form.value_bytes,
        transactions=transactions,
        file=SHARD_FILE,
        sha256=None,
    )


def _table(first: int, chosen: list[Row], schema: pa.Schema, moment: datetime) -> pa.Table:
    count = len(chosen)
    numbers = range(first, first + count)
    topics, keys, contents = zip(*chosen, strict=True)
    columns: dict[str, list[object]] = {
        "position": list(numbers),
        "topic": list(topics),
        "key": list(keys),
        "value": list(contents),
        "partition": [None] * count,
        "timestamp": [moment] * count,
        "transaction": [number // TRANSACTION_RECORDS for number in numbers],
        "batch": list(numbers),
        "sub_batch": [0] * count,
        "events": [1] * count,
    }
    for name in schema.names:
        if name.startswith(HEADER_PREFIX):
            columns[name] = [f"urn:{name[-1]}:{number:012d}".encode() for number in numbers]
    return pa.Table.from_pydict(columns, schema=schema)


def _manifest(outbox: str, shards: Sequence[ShardManifest]) -> Manifest:
    records = sum(shard.records for shard in shards)
    return Manifest(
        outbox=outbox,
        publication=PUBLICATION,
        fingerprint="",
        sequence=1,
        mode="full",
        run="bench",
        landing_digest="",
        received_from=NOON,
        received_to=NOON,
        state_generation=0,
        watermark=None,
        shards=tuple(shards),
        topics=1,
        read=records,
        present=0,
        source_count=records,
        accepted=records,
        unchanged=0,
        quarantined={},
        quarantined_entities=0,
        warnings={},
        repeated=0,
        upserts=records,
        deletes=0,
        absent=0,
    )
