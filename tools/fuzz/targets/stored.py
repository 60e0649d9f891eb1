"""What lies on storage and in the ledger, damaged: documents, the inbox, Parquet of outboxes and of state.

Contexture wrote it, so what is wrong with it may be called a defect; it must be called something.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.errors import ContextureError
from contexture.sending.ledger import LedgerEntry
from contexture.storage.home import Home
from contexture.storage.inbox_files import InboxEntry, decode_file, encode_entry, encode_file
from contexture.storage.manifests import Manifest, ShardManifest
from contexture.storage.outboxes import OutboxStatus, StatusChange
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import OUTBOX, STATE
from contexture.storage.state import FORMAT, StatePointer
from tools.fuzz.target import Target

_NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_NAME, _OUTBOX, _ROWS = "cars", "outbox1", 40
_ANY = (ContextureError,)

_ENTRY = LedgerEntry("outbox1", 7, 40, 40, 1_000, 3, 12, _NOON)
_SHARD = ShardManifest(shard=0, records=_ROWS, bytes=800, transactions=1, file=SHARD_FILE, sha256=None)
_STATUS = OutboxStatus(outbox=_OUTBOX, sequence=7, steps=(StatusChange(status="prepared", at=_NOON, reason="run r"),))
_POINTER = StatePointer(generation=3, files=("state.parquet",), rows=(_ROWS,), identities=_ROWS, format=FORMAT)
_ATTEMPTS = (
    b'{"outbox":"outbox1","shard":0,"attempt":1,"allowed":3,"state":"waiting","next_at":null,'
    b'"failed_at":"2026-03-01T12:00:00Z","intent":"retry","message":"x","failed":1}'
)


@cache
def _storage() -> Home:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return Home(tempfile.mkdtemp(prefix="contexture-fuzz-"))


def _manifest() -> Manifest:
    counts = dict.fromkeys(("topics", "read", "present", "source_count", "accepted", "upserts"), _ROWS)
    none = dict.fromkeys(("unchanged", "quarantined_entities", "repeated", "deletes", "absent", "state_generation"), 0)
    return Manifest.model_validate(
        {
            **{"outbox": _OUTBOX, "publication": _NAME, "fingerprint": "f", "sequence": 7, "mode": "changes"},
            **{"run": "r", "landing_digest": "", "received_from": _NOON, "received_to": _NOON, "watermark": None},
            **{"shards": (_SHARD,), "quarantined": {}, "warnings": {}, **counts, **none},
        }
    )


_MANIFEST = _manifest()


def _stored(path: str, read: Callable[[Home], object]) -> Callable[[bytes], object]:
    """Reads an input as the file of that path."""

    def parse(data: bytes) -> object:
        storage = _storage()
        file = Path(storage.path(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return type(read(storage)).__name__

    return parse


def _ledger(data: bytes) -> object:
    entry = LedgerEntry.from_json(data)
    # What is read has to be what is compared and written later.
    replace(entry, sequence=entry.sequence + 1, position=entry.position + 1).to_json()
    return entry.source_place is None, entry.at < _NOON


def _inbox(data: bytes) -> object:
    return min(len([entry.received_at for entry in decode_file(data, "f")]), 2)


def _shard(storage: Home) -> object:
    reader = storage.publication(_NAME).reader(_MANIFEST, 0)
    return [reader.varying_headers(), *(batch.to_pylist() for batch in reader.batches(3))]


def _state(storage: Home) -> object:
    state = storage.publication(_NAME).state
    found = state.table(_POINTER).to_pylist()
    hashes = pa.array([bytes(16)], pa.binary(16))
    return found, state.reader(_POINTER).of_entities(hashes, ["identity", "topics"])


def _outbox_file() -> Mapping[str, bytes]:
    columns = {
        "position": list(range(_ROWS)),
        "topic": ["cars", "trucks"] * (_ROWS // 2),
        "key": [b"key"] * _ROWS,
        "value": [b'{"id":"car1"}', None] * (_ROWS // 2),
        "partition": [None] * _ROWS,
        "timestamp": [_NOON] * _ROWS,
        "transaction": [0] * _ROWS,
        "batch": list(range(_ROWS)),
        "sub_batch": [0] * _ROWS,
        "events": [1] * _ROWS,
    }
    table = pa.Table.from_pydict(columns, schema=OUTBOX)
    return {codec: _parquet(table, codec, 15) for codec in ("snappy", "zstd", "none")}


def _state_file() -> Mapping[str, bytes]:
    rows = [
        {
            **{"identity_hash": number.to_bytes(16), "entity_hash": number.to_bytes(16), "identity": b"[]"},
            **{"content_hash": bytes(32), "topics": ["cars"], "key": b"k", "withheld": False, "sequence": 1},
            "removed": False,
        }
        for number in range(_ROWS)
    ]
    return {"zstd": _parquet(pa.Table.from_pylist(rows, schema=STATE), "zstd", 15)}


def _parquet(table: pa.Table, codec: str, rows_in_group: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression=codec, row_group_size=rows_in_group)
    return bytes(sink.getvalue())


def _inbox_file() -> Mapping[str, bytes]:
    entries = [InboxEntry(1_700_000_000_000_000 + number, number, {"a": "b"}, b"{}") for number in range(3)]
    return {"file": encode_file([encode_entry(entry) for entry in entries])}


def _one(name: str, what: str, path: str, read: Callable[[Home], object], content: bytes) -> Target:
    return Target(name, what, _stored(path, read), lambda: {"document": content}, "json", (), _ANY)


_CLAIM = b'{"files":["00000000000000001-a-000000000001"]}'
_SEEN = b'{"cluster":"c","topic_id":"t","written":true}'
_TOPICS = b'{"cluster":"c","ids":{"cars":"t"}}'
_WHOLE = _stored(f"{_NAME}/outbox/{_OUTBOX}/shard=0/{SHARD_FILE}", _shard)

TARGETS = (
    Target("ledger", "rows of the ledger", _ledger, lambda: {"entry": _ENTRY.to_json()}, "json", (b"at",), _ANY),
    _one(
        "manifests",
        "manifests of outboxes",
        f"{_NAME}/outbox/{_OUTBOX}/manifest.json",
        lambda storage: storage.publication(_NAME).outboxes.manifest(_OUTBOX),
        _MANIFEST.to_json(),
    ),
    _one(
        "statuses",
        "statuses of outboxes",
        f"{_NAME}/outbox/{_OUTBOX}/status.json",
        lambda storage: storage.publication(_NAME).outboxes.status(_OUTBOX).status,
        _STATUS.to_json(),
    ),
    _one(
        "state-pointers",
        "pointers of state",
        f"{_NAME}/state/CURRENT",
        lambda storage: storage.publication(_NAME).state.pointer(),
        _POINTER.to_json(),
    ),
    _one(
        "ledgers-seen",
        "notes of a ledger",
        f"{_NAME}/ledger.json",
        lambda storage: storage.publication(_NAME).ledger.known(),
        _SEEN,
    ),
    _one(
        "topics-known",
        "notes of topics",
        f"{_NAME}/topics.json",
        lambda storage: storage.publication(_NAME).known_topics(),
        _TOPICS,
    ),
    _one(
        "claims",
        "claims of the inbox",
        f"{_NAME}/outbox/{_OUTBOX}/inbox.json",
        lambda storage: storage.publication(_NAME).release_claim(_OUTBOX),
        _CLAIM,
    ),
    _one(
        "attempts",
        "notes of failed sends",
        f"{_NAME}/outbox/{_OUTBOX}/attempts/shard=0.json",
        lambda storage: storage.publication(_NAME).attempts.of_outbox(_OUTBOX),
        _ATTEMPTS,
    ),
    Target("inbox", "files of the inbox", _inbox, _inbox_file, "bytes", (b"CTXIN1",), _ANY),
    Target("outbox", "Parquet of an outbox", _WHOLE, _outbox_file, "bytes", (b"PAR1",), _ANY),
    Target(
        "state",
        "Parquet of state",
        _stored(f"{_NAME}/state/state.parquet", _state),
        _state_file,
        "bytes",
        (b"PAR1",),
        _ANY,
    ),
)
