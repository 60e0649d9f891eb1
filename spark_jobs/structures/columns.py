"""Columns of the files that preparing structures writes on the way."""

from __future__ import annotations

import pyarrow as pa

_UTC = pa.timestamp("us", tz="UTC")

_WHAT_IT_IS = [
    pa.field("event", pa.int64(), nullable=False),
    pa.field("operation", pa.string(), nullable=False),
    pa.field("verdict", pa.int32(), nullable=False),
    pa.field("urn", pa.string()),
    pa.field("declared_urn", pa.string()),
    pa.field("kind", pa.string()),
    pa.field("agency", pa.string()),
    pa.field("id", pa.string()),
    pa.field("version", pa.string()),
    pa.field("source_transaction", pa.int64()),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("content_hash", pa.binary(32)),
    pa.field("topics", pa.list_(pa.string())),
    pa.field("references", pa.list_(pa.string()), nullable=False),
    pa.field("reference_count", pa.int32(), nullable=False),
    pa.field("is_final", pa.bool_(), nullable=False),
    pa.field("rules", pa.string()),
    pa.field("warnings", pa.string()),
    pa.field("media_type", pa.string()),
    pa.field("transcoded_from", pa.string()),
    pa.field("lost", pa.string()),
    pa.field("modified_at", _UTC),
    pa.field("received_at", _UTC, nullable=False),
]

EVALUATED = pa.schema(_WHAT_IT_IS)
"""One row per landing row, as planning has left it: what the checkpoint judges. `event` is the row's ordinal; `rules`
and `warnings` are names with commas between them; `topics` are there where the content was accepted; `transcoded_from`
is the media type of what was converted, and `lost` says what of it was lost."""

_VIOLATION = pa.struct(
    [
        pa.field("rule", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
    ]
)

LOOKED_AT = pa.schema(
    [
        *_WHAT_IT_IS,
        pa.field("unit", pa.int32(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("errors", pa.list_(_VIOLATION), nullable=False),
    ]
)
"""The same before planning, with the place of its body and what goes to quarantine with it."""

PLANNED = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("unit", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("transaction", pa.int64(), nullable=False),
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("sub_batch", pa.int64(), nullable=False),
        pa.field("source_transaction", pa.int64()),
        pa.field("transcoded_from", pa.string()),
        pa.field("lost", pa.string()),
        pa.field("media_type", pa.string()),
        pa.field("content_hash", pa.binary(32), nullable=False),
        pa.field("happened_at", _UTC),
        pa.field("occasion", pa.string(), nullable=False),
    ]
)
"""The records in sending order, without their values; a record without a place is a tombstone.

The last four are for envelopes: of a tombstone `content_hash` is that of what is gone; `happened_at` is when the
registry says that it happened; `occasion` stands for it where it says nothing."""

QUARANTINED = pa.schema([pa.field("event", pa.int64(), nullable=False), pa.field("unit", pa.int32()), *_VIOLATION])
"""What goes to quarantine, without its landing row; a row that breaks several rules stands once for each."""
