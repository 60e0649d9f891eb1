"""Rows of state, made of what topics hold."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.events import identity_hash
from contexture.operations.recovery.gathering import Gathered
from contexture.storage.home import Storage
from contexture.storage.schemas import STATE

UNTOLD: Final = b"\1" * 32
"""The content hash of what no value tells: no content has it, so that it is sent when it is read again."""

_ROWS_AT_ONCE: Final = 50_000


def write_rows(storage: Storage, folder: str, found: Iterable[Gathered], sequence: int) -> None:
    """Writes what was found as changes of state, into a folder that is not there yet."""
    rows = (_row(each, sequence) for each in found)
    with (
        storage.replacing(f"{folder}/rows.parquet") as path,
        pq.ParquetWriter(path, STATE, filesystem=storage.filesystem, compression="zstd") as writer,
    ):
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(some, schema=STATE))


def _row(each: Gathered, sequence: int) -> dict[str, Any]:
    return {
        "identity_hash": identity_hash(each.identity),
        "entity_hash": each.entity_hash,
        "identity": each.identity,
        "content_hash": each.content or UNTOLD,
        "topics": each.topics,
        "key": each.key,
        # Nobody knows when it was changed: a record's time may be that of its arrival.
        "modified_at": None,
        "missing_since": None,
        "withheld": False,
        "sequence": sequence,
        "removed": False,
        "expires_at": None,
        "references": each.references or None,
        "is_final": None,
    }
