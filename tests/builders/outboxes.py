"""Small outboxes as stage leaves them: prepared, with their order and their verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from contexture.events import identity_hash
from contexture.publications import Publication, fingerprint
from contexture.storage.home import Home
from contexture.storage.manifests import ExpectationResult, Manifest, QualityVerdict, ShardManifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import IDENTITIES, OUTBOX

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Record = tuple[str, bytes, bytes | None]


def publication(**changes: Any) -> Publication:
    """The vehicles, with sections replaced by `changes`."""
    settings: dict[str, Any] = {
        "name": "vehicles",
        "schedule": "*/5 * * * *",
        "source": {
            "kind": "ngsi",
            "connection": "context_broker",
            "service": "vehicles",
            "service_path": "/4wheels",
            "types": ["car"],
        },
        "batches": {"batch_ttl": 2, "batch_retry_intervals": [10, 20]},
    }
    return Publication.model_validate({**settings, **changes})


def records(*names: str, topic: str = "cars") -> list[Record]:
    """One record for each name."""
    return [(topic, name.encode(), f'{{"id":"{name}"}}'.encode()) for name in names]


def outbox(
    storage: Home,
    owner: Publication,
    sequence: int,
    shards: Sequence[Sequence[Record]],
    *,
    name: str | None = None,
    run: str | None = None,
    mode: str = "changes",
    interval: tuple[datetime, datetime] | None = None,
    failed: Mapping[str, str] | None = None,
    cluster: str | None = None,
) -> Manifest:
    """Writes a prepared outbox; `failed` are expectations that failed, with their severity; `cluster` is where its run
    was to send."""
    folder = PublicationPaths(owner.name)
    name, run = name or f"outbox{sequence}", run or f"run{sequence}"
    described = [_shard(storage, folder, name, number, rows) for number, rows in enumerate(shards)]
    _topics(storage, folder.topics(name), shards)
    manifest = _manifest(owner, name, run, sequence, mode, described, interval)
    order = StageOrder(
        publication=owner,
        fingerprint=fingerprint(owner),
        home=storage.root,
        run=run,
        mode=manifest.mode,
        sequence=sequence,
        interval=interval,
        cluster=cluster,
    )
    storage.write(folder.order(run), order.to_json())
    storage.write(folder.verdict(name), _verdict(name, failed or {}).to_json())
    storage.write(folder.manifest(name), manifest.to_json())
    storage.publication(owner.name).outboxes.prepared(manifest)
    return manifest


def say_whom(storage: Home, manifest: Manifest, *listed: Sequence[Sequence[str]]) -> None:
    """Writes the entities of the records of an outbox: for each shard names for each record, else by their keys."""
    folder = PublicationPaths(manifest.publication)
    for number, shard in enumerate(manifest.shards):
        if not shard.records:
            continue
        path = storage.path(f"{folder.shard(manifest.outbox, number)}/part-00000.parquet")
        table = pq.read_table(path)
        names = listed[number] if listed else [[key.decode()] for key in table.column("key").to_pylist()]
        column = [b"".join(identity_hash(name.encode()) for name in each) for each in names]
        pq.write_table(table.append_column(IDENTITIES, pa.array(column, pa.binary())), path)


def _verdict(name: str, failed: Mapping[str, str]) -> QualityVerdict:
    results = [
        ExpectationResult.model_validate(
            {
                "name": expectation,
                "severity": severity,
                "success": False,
                "on": "entities",
                "description": f"{expectation} holds",
                "observed": "7 of 9",
            }
        )
        for expectation, severity in failed.items()
    ]
    return QualityVerdict(outbox=name, approved="critical" not in failed.values(), results=tuple(results))


def _shard(storage: Home, folder: PublicationPaths, name: str, shard: int, rows: Sequence[Record]) -> ShardManifest:
    if not rows:
        return ShardManifest(shard=shard, records=0, bytes=0, transactions=0, file=None, sha256=None)
    columns: dict[str, list[Any]] = {
        "position": list(range(len(rows))),
        "topic": [topic for topic, _, _ in rows],
        "key": [key for _, key, _ in rows],
        "value": [value for _, _, value in rows],
        "partition": [None] * len(rows),
        "timestamp": [NOON] * len(rows),
        "transaction": [0] * len(rows),
        "batch": list(range(len(rows))),
        "sub_batch": [0] * len(rows),
        "events": [1] * len(rows),
    }
    with storage.write_atomically(f"{folder.shard(name, shard)}/part-00000.parquet") as path:
        pq.write_table(pa.Table.from_pydict(columns, schema=OUTBOX), path)
    size = sum(len(key) + len(value or b"") for _, key, value in rows)
    return ShardManifest(
        shard=shard, records=len(rows), bytes=size, transactions=1, file="part-00000.parquet", sha256=None
    )


def _topics(storage: Home, path: str, shards: Sequence[Sequence[Record]]) -> None:
    counted = Counter(topic for rows in shards for topic, _, _ in rows)
    columns = {"topic": list(counted), "records": list(counted.values())}
    schema = pa.schema([("topic", pa.string()), ("records", pa.int64())])
    with storage.write_atomically(path) as temporary:
        pq.write_table(pa.Table.from_pydict(columns, schema=schema), temporary)


def _manifest(
    owner: Publication,
    name: str,
    run: str,
    sequence: int,
    mode: str,
    shards: list[ShardManifest],
    interval: tuple[datetime, datetime] | None,
) -> Manifest:
    total = sum(shard.records for shard in shards)
    return Manifest.model_validate(
        {
            "outbox": name,
            "publication": owner.name,
            "fingerprint": fingerprint(owner),
            "sequence": sequence,
            "mode": mode,
            "run": run,
            "landing_digest": "",
            "received_from": NOON,
            "received_to": NOON,
            "state_generation": 0,
            "watermark": "2026-03-01T12:00:00.000Z",
            "shards": shards,
            "topics": 1,
            "read": total,
            "present": total,
            "source_count": total,
            "accepted": total,
            "unchanged": 0,
            "quarantined": {},
            "quarantined_entities": 0,
            "warnings": {},
            "repeated": 0,
            "upserts": total,
            "deletes": 0,
            "absent": 0,
            "interval": interval,
        }
    )
