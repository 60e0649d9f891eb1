"""Headers of records that are Contexture's own marks, and times in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from contexture.kafka import ReplicaRecord

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
