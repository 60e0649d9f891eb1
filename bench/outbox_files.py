"""An outbox as prepare leaves it, and the same values as a file for Kafka's own program."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.outbox.layout import PublicationFolder
from contexture.outbox.manifest import Manifest, ShardManifest
from contexture.outbox.schemas import OUTBOX
from contexture.outbox.storage import Storage

PUBLICATION = "bench"
TOPIC = "bench.cars"
VALUE_BYTES = 300
TRANSACTION_RECORDS = 50_000
ROW_GROUP = 100_000
FILE = "part-00000.parquet"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def values() -> Iterator[bytes]:
    """Texts of VALUE_BYTES bytes, no two the same, about as compressible as entities are."""
    number = 0
    while True:
        token = blake2b(number.to_bytes(8), digest_size=16).hexdigest()
        text = (
            f'{{"id":"urn:ngsi-ld:Vehicle:{number:09d}","type":"Vehicle",'
            f'"speed":{{"type":"Number","value":{number * 37 % 1300 / 10},"metadata":{{}}}},'
            f'"odometer":{{"type":"Number","value":{number * 7919 % 400_009},"metadata":{{}}}},'
            f'"plate":{{"type":"Text","value":"{token}","metadata":{{}}}},"note":{{"type":"Text","value":"'
        )
        yield f'{text}{"." * (VALUE_BYTES - len(text) - 3)}"}}}}'.encode()
        number += 1


def write_outbox(home: Path, records: int) -> Manifest:
    """An outbox of one shard, without keys and headers, in transactions of TRANSACTION_RECORDS."""
    storage, outbox = Storage(str(home)), f"outbox{records}"
    folder = PublicationFolder(PUBLICATION)
    with (
        storage.replacing(f"{folder.shard(outbox, 0)}/{FILE}") as path,
        pq.ParquetWriter(path, OUTBOX, compression="zstd", compression_level=1) as writer,
    ):
        source = values()
        for first in range(0, records, ROW_GROUP):
            chosen = list(islice(source, min(ROW_GROUP, records - first)))
            writer.write_table(_rows(first, chosen), row_group_size=ROW_GROUP)
    manifest = _manifest(outbox, records)
    storage.write(folder.manifest(outbox), manifest.to_json())
    return manifest


def write_payloads(file: Path, records: int) -> None:
    """The first values, one a line; Kafka's program draws from them at random."""
    file.write_bytes(b"\n".join(islice(values(), records)))


def _rows(first: int, chosen: list[bytes]) -> pa.Table:
    count = len(chosen)
    numbers = range(first, first + count)
    columns = {
        "position": list(numbers),
        "topic": [TOPIC] * count,
        "key": [None] * count,
        "value": chosen,
        "partition": [None] * count,
        "timestamp": [NOON] * count,
        "transaction": [number // TRANSACTION_RECORDS for number in numbers],
        "batch": list(numbers),
        "sub_batch": [0] * count,
        "events": [1] * count,
    }
    return pa.Table.from_pydict(columns, schema=OUTBOX)


def _manifest(outbox: str, records: int) -> Manifest:
    transactions = -(-records // TRANSACTION_RECORDS)
    shard = ShardManifest(
        shard=0, records=records, bytes=records * VALUE_BYTES, transactions=transactions, file=FILE, sha256=None
    )
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
        shards=(shard,),
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
