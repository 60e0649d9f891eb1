"""States and the deltas that outboxes bring to them; names stand for identities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from builders.outboxes import Record, outbox
from contexture.events import identity_hash
from contexture.publications import Publication
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.schemas import STATE
from contexture.storage.state import State, StatePointer
from contexture.storage.state_files import latest, writing

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Held(NamedTuple):
    """One row of state; the content is a word, the key the name unless another is given."""

    name: str
    content: str = "a"
    sequence: int = 1
    removed: bool = False
    missing_since: datetime | None = None
    topics: tuple[str, ...] = ("cars",)
    key: str | None = None


def state_table(rows: Iterable[Held]) -> Any:
    """The rows as a table of the STATE schema."""
    listed = [
        {
            "identity_hash": identity_hash(row.name.encode()),
            "entity_hash": identity_hash(row.name.encode()),
            "identity": row.name.encode(),
            "content_hash": row.content.encode().ljust(32),
            "topics": row.topics,
            "key": (row.key or row.name).encode(),
            "modified_at": NOON,
            "missing_since": row.missing_since,
            "withheld": False,
            "sequence": row.sequence,
            "removed": row.removed,
        }
        for row in rows
    ]
    return pa.Table.from_pylist(listed, schema=STATE)


def write_files(state: State, *files: Any) -> StatePointer:
    """Sorted files, older ones first, and a pointer to them; of rows, or of tables of the STATE schema."""
    names = tuple(f"file{number}.parquet" for number in range(len(files)))
    for name, rows in zip(names, files, strict=True):
        with writing(state.folder, name) as file:
            table = rows if isinstance(rows, pa.Table) else state_table(rows)
            file.write(latest(table, keep_removed=True))
    return StatePointer(files=names)


def approved(
    storage: Home,
    owner: Publication,
    sequence: int,
    delta: Iterable[Held],
    shards: Iterable[list[Record]] = ((),),  # type: ignore[assignment]
    **options: Any,
) -> Manifest:
    """An outbox that may be concluded, with what that changes in state."""
    manifest = outbox(storage, owner, sequence, list(shards), **options)
    folder = PublicationPaths(owner.name).state_delta(manifest.outbox)
    with storage.write_atomically(f"{folder}/shard-00000.parquet") as path:
        pq.write_table(state_table(delta), path, filesystem=storage.filesystem)
    storage.publication(owner.name).outboxes.set_status(manifest.outbox, "approved", reason="good")
    return manifest


def held(storage: Home, publication: str, pointer: StatePointer | None = None) -> Mapping[str, str]:
    """What the state holds: names with their contents."""
    state = storage.publication(publication).state
    rows = state.table(pointer or state.pointer()).to_pylist()
    return {row["identity"].decode(): row["content_hash"].decode().strip() for row in rows}
