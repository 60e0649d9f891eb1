"""Accepted events on their way to the outbox, written by the tasks that made them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.preparation.run_files import RunFiles

RENDERED = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("topics", pa.list_(pa.string()), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("identity", pa.binary(), nullable=False),
        pa.field("identity_hash", pa.binary(16), nullable=False),
        pa.field("entity_hash", pa.binary(16), nullable=False),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("expires_at", pa.timestamp("us", tz="UTC")),
    ]
)
"""One event with everything its records and its row of state need; headers that vary follow as `header:<name>`."""


def rendered_folder(work: str, shard: int) -> str:
    """Where the rendered events of one shard lie."""
    return f"{work}/rendered/shard={shard}"


def write_rendered(files: RunFiles, work: str, events: Any) -> None:
    """Appends a table of the RENDERED schema (and headers), in order, to the files of its shards."""
    shards = events.column("shard")
    for shard in pc.unique(shards).to_pylist():
        files.write(rendered_folder(work, shard), events.filter(pc.equal(shards, shard)))
