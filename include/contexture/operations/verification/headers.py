"""Headers of records that are Contexture's own marks, and times in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from contexture.kafka import ReplicaRecord
from contexture.storage.schemas import EVENT_TIME_HEADER

OWN_HEADERS: Final = ("contexture-", "contexture_")
"""What names of Contexture's own marks begin with, such as that of a backfill: a source says nothing of them."""


def foreign_headers(record: ReplicaRecord) -> bool:
    """Returns whether a record has a header that is no mark of Contexture's own."""
    return any(not name.startswith(OWN_HEADERS) for name, _ in record.headers)


def parse_time(text: str | None) -> datetime | None:
    """Returns a moment in UTC; None where a text is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def record_time_ms(record: ReplicaRecord) -> int | None:
    """Returns a record's own time, in milliseconds since 1970."""
    return record.timestamp_ms


def event_time_ms(record: ReplicaRecord) -> int | None:
    """Returns the time in the header of a history's record, in milliseconds since 1970; None where it has none."""
    text = dict(record.headers).get(EVENT_TIME_HEADER) or b""
    return int(text) if text.isdigit() else None
