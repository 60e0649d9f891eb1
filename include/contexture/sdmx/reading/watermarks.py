"""How far a publication has read its registry, as a text that the next run begins with.

With a log it is the id of a transaction, in decimal digits. Without one it is the registry's own Last-Modified, and
good for nothing but the question whether anything changed since.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from contexture.sdmx.registries import Log

SETTLED = timedelta(minutes=5)
"""How long ago the last change must be before its time is relied on: HTTP counts whole seconds, and clocks differ."""


def transaction_of(watermark: str | None) -> int | None:
    """The id that a watermark of a registry with a log says; None where it says none."""
    return int(watermark) if watermark and watermark.isascii() and watermark.isdigit() else None


def reached(log: Log, after: int) -> int:
    """The last transaction that the log has told about, be it in a gap. (The newest one may not be told yet.)"""
    told = (transaction.id for transaction in log.transactions)
    return max(after, log.gap_until or after, *told)


def settled(last_modified: str | None, listed_at: datetime) -> str | None:
    """The time of the last change, if the registry can be asked by it next time; None where it gives none, or one that
    can't be relied on.

    Args:
        last_modified: of the list of everything, before anything was read.
        listed_at: a moment before that list was asked for.
    """
    time = _time(last_modified) if last_modified else None
    return last_modified if time is not None and time <= listed_at - SETTLED else None


def _time(text: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
