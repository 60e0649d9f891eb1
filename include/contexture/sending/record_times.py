"""The time of records in topics that Kafka empties by age."""

from __future__ import annotations

import pyarrow as pa

from contexture.storage.schemas import EVENT_TIME_HEADER, HEADER_PREFIX

_COLUMN = f"{HEADER_PREFIX}{EVENT_TIME_HEADER}"


def timed_by_sending(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows whose records get the time of their sending, and the outbox's time as a header.

    Kafka removes records by their own time. A record of an entity that was changed before the topic's retention began
    would be removed seconds after it was sent. The header `contexture_event_time` holds milliseconds since 1970 as
    decimal text; records without a time have none. The rows are always the same: the client sets the time of sending.
    """
    place = rows.schema.get_field_index("timestamp")
    if place < 0 or rows.column(place).null_count == rows.num_rows:
        return rows
    times = rows.column(place)
    milliseconds = times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    header = milliseconds.cast(pa.string()).cast(pa.binary())
    without = rows.set_column(place, rows.schema.field(place).with_nullable(True), pa.nulls(rows.num_rows, times.type))
    return without.append_column(pa.field(_COLUMN, pa.binary()), header)
