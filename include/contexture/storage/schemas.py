"""Columns of everything that lies on storage (DESIGN: shapes on storage)."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

FORMAT_VERSION = 1

HEADER_PREFIX = "header:"
"""Columns of this prefix are headers of records, by their names; a null is none."""

_UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
HASH_BYTES = 16
_HASH = pa.binary(HASH_BYTES)

LANDING = pa.schema(
    [
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("path", pa.string()),
        pa.field("id", pa.string()),
        pa.field("type", pa.string()),
        pa.field("version", pa.string()),
        pa.field("body", pa.binary()),
        pa.field("media_type", pa.string()),
        pa.field("created_at", _UTC_MICROSECONDS),
        pa.field("modified_at", _UTC_MICROSECONDS),
        pa.field("source_transaction", pa.int64()),
        pa.field("received_at", _UTC_MICROSECONDS, nullable=False),
    ]
)
"""One row per source object as it arrived. `operation`: `upsert`; `present`: its identity was seen, not its body;
`delete`: the source said that it is gone, or it is no longer selected; `inexpressible`: the registry holds it, and not
in the format that was asked for. The `media_type` of a notified row says so, and in which form its body is."""

OUTBOX = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("partition", pa.int32()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("transaction", pa.int64(), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("sub_batch", pa.int64(), nullable=False),
        pa.field("events", pa.int32(), nullable=False),
    ]
)
"""The records of one shard in sending order; a null `value` is a tombstone. Varying headers add `header:<name>`."""

IDENTITIES = pa.field("identities", pa.binary())
"""A further column where records may go to a dead-letter topic: the identity hashes of the events in a record,
16 bytes each, so that state can say of whom the target holds something else."""

EVENT_TIME_HEADER = "contexture_event_time"
"""Header of records in topics with `keep: history`: the time that the outbox has for the record, in milliseconds since
1970 as decimal text. Their own time is that of sending, because Kafka removes them by it."""

REGISTRY_HEADER = pa.field("header:contexture_registry_transaction", pa.binary())

STRUCTURE_OUTBOX = pa.schema([*OUTBOX, pa.field("source_transaction", pa.int64()), REGISTRY_HEADER])
"""The same of a registry publication: the registry's number of the transaction, which each record carries as a header
too, as decimal text. Both are null where the registry numbers none."""

TRANSCODED_HEADERS = ("contexture_transcoded_from", "contexture_transcoding_lost")
"""Headers of structures that were converted: the media type of what the registry wrote, and what was lost; publications
with `message.allow_lossy` have columns for them."""

QUARANTINE = pa.schema(
    [
        *LANDING,
        pa.field("rule", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)

COLLISIONS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("holder", pa.string(), nullable=False),
        pa.field("refused", pa.bool_(), nullable=False),
    ]
)
"""Events whose topic is that of another identity, the `holder`: both as JSON arrays, as in keys of records."""

TRANSCODED = pa.schema(
    [
        pa.field("urn", pa.string(), nullable=False),
        pa.field("transcoded_from", pa.string(), nullable=False),
        pa.field("media_type", pa.string(), nullable=False),
        pa.field("lost", pa.string()),
    ]
)
"""Accepted structures that were converted, from which form into which; `lost` is null where nothing was."""

BUNDLED = pa.schema(
    [
        pa.field("source_transaction", pa.int64()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("urn", pa.string(), nullable=False),
    ]
)
"""The structures of messages of whole transactions, which have no keys: a row for each, in the order of its message."""

BUNDLED_FILE = "bundled.parquet"
"""The file of these rows; only in outboxes that have such messages."""

STATE = pa.schema(
    [
        pa.field("identity_hash", _HASH, nullable=False),
        pa.field("entity_hash", _HASH, nullable=False),
        pa.field("identity", pa.binary(), nullable=False),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("topics", pa.list_(pa.string()), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("modified_at", _UTC_MICROSECONDS),
        pa.field("missing_since", _UTC_MICROSECONDS),
        pa.field("withheld", pa.bool_(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("removed", pa.bool_(), nullable=False),
        pa.field("expires_at", _UTC_MICROSECONDS),
        pa.field("references", pa.list_(pa.string())),
        pa.field("is_final", pa.bool_()),
    ]
)
"""What the target holds. `identity_hash` is of the row, `entity_hash` of its entity; a row that is
`removed` is only in deltas; `sequence` is that of the outbox that last sent it; `expires_at` is when the source
will delete it, where it said so. Of structures, `references` are the URNs of those that the content refers to, and
`is_final` is what it says of itself; both are null of entities, and of what no run has read since they are kept. Files
of earlier versions lack the last three columns, which are null then."""


def with_headers(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """A schema with a column for each of these headers at its end."""
    return pa.schema([*schema, *(pa.field(f"{HEADER_PREFIX}{name}", pa.binary()) for name in names)])
