"""What a publication stores and sends, as text that a file can hold: it must not change when the code is moved."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from contexture.kafka import ClientSettings
from contexture.sending import Publisher, SenderNames
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from fakes.clock import TickingClock
from fakes.kafka_cluster import FakeCluster, FakeHidden, FakeLedger, Sent

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "nowhere:1"})
CLOCK_MEMBERS = ("at", "since")


def manifest_of(manifest: Manifest) -> dict[str, Any]:
    """A manifest without the digests of its files: another pyarrow may write the same rows in other bytes."""
    found: dict[str, Any] = orjson.loads(manifest.to_json())
    for shard in found["shards"]:
        del shard["sha256"]
    return found


def sent_of(storage: Home, manifest: Manifest) -> list[list[dict[str, Any]]]:
    """Every transaction of an outbox as the client of Kafka gets it, the ledger's rows among it."""
    cluster = FakeCluster()
    names = SenderNames(manifest.publication)
    publisher = Publisher(
        SETTINGS,
        names,
        shards=len(manifest.shards),
        ledger=FakeLedger(cluster, names),
        hidden=FakeHidden(cluster),
        open_producer=cluster.open_producer,
        clock=TickingClock(),
        sleep=lambda seconds: None,
    )
    for shard in manifest.shards:
        if shard.records:
            publisher.publish(OutboxShardReader(storage, manifest, shard.shard))
    return [[_record(each) for each in transaction] for transaction in cluster.transactions]


def rows_of(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table, their bytes and times as text."""
    return [{name: _text(value) for name, value in row.items()} for row in rows]


def json_of(content: Any) -> bytes:
    """The text of a golden file: small differences are small in it."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def _record(sent: Sent) -> dict[str, Any]:
    value = sent.value
    if sent.topic.startswith("contexture.ledger."):
        row = orjson.loads(value or b"")
        # Every other member follows from the outbox.
        value = orjson.dumps({name: each for name, each in row.items() if name not in CLOCK_MEMBERS})
    headers: Sequence[tuple[str, bytes | None]] = sent.headers or ()  # type: ignore[assignment]
    record = {"topic": sent.topic, "key": _text(sent.key), "value": _text(value), "timestamp": sent.timestamp}
    if sent.partition >= 0:
        record["partition"] = sent.partition
    if headers:
        record["headers"] = [[name, _text(content)] for name, content in headers]
    return record


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _text(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    return value
