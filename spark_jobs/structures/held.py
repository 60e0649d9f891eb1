"""What state holds of structures, as planning sees it, and the rows that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.events import identity_hash
from contexture.records.changes.structure_changes import HeldStructure
from contexture.storage.home import Storage
from contexture.storage.schemas import STATE
from spark_jobs.preparation.settings import Preparation

_HELD = ["key", "content_hash", "topics", "withheld", "modified_at", "sequence", "references", "is_final"]


def held_structures(rows: Any) -> dict[str, HeldStructure]:
    """The structures of state, by URN, in order of their URNs."""
    columns = (rows.column(name).to_pylist() for name in _HELD)
    found = {
        key.decode(): HeldStructure(
            content_hash, tuple(topics), withheld, at, sequence, tuple(references or ()), is_final
        )
        for key, content_hash, topics, withheld, at, sequence, references, is_final in zip(*columns, strict=True)
    }
    return dict(sorted(found.items()))


def write_changes(
    storage: Storage,
    preparation: Preparation,
    held: Mapping[str, HeldStructure],
    changes: Mapping[str, HeldStructure | None],
) -> None:
    """Writes what concluding the outbox changes in state."""
    folder = preparation.folder.state_delta(preparation.outbox)
    table = changed_rows(held, changes)
    with storage.replacing(f"{folder}/shard-00000.parquet") as path:
        pq.write_table(table, path, filesystem=storage.filesystem, compression="zstd")


def changed_rows(held: Mapping[str, HeldStructure], changes: Mapping[str, HeldStructure | None]) -> Any:
    """The rows of state that concluding an outbox adds to those before."""
    return pa.Table.from_pylist(list(_rows(held, changes)), schema=STATE)


def _rows(held: Mapping[str, HeldStructure], changes: Mapping[str, HeldStructure | None]) -> Iterator[dict[str, Any]]:
    for urn, after in changes.items():
        key = urn.encode()
        hashed = identity_hash(key)
        row = after or held[urn]
        yield {
            "identity_hash": hashed,
            "entity_hash": hashed,
            "identity": key,
            "content_hash": row.content_hash,
            "topics": row.topics,
            "key": key,
            "modified_at": row.at,
            "missing_since": None,
            "withheld": row.withheld,
            "sequence": row.sequence,
            "removed": after is None,
            "expires_at": None,
            "references": row.references,
            "is_final": row.is_final,
        }
