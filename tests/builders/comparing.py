"""Snapshots and states as the narrow tables that `compare` takes; names stand for identities and contents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from contexture.records.changes import ChangeKind

MORNING = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
MOMENT = pa.timestamp("us", tz="UTC")
SNAPSHOT = pa.schema(
    [
        ("verdict", pa.int32()),
        ("identity_hash", pa.binary(16)),
        ("entity_hash", pa.binary(16)),
        ("content_hash", pa.binary()),
        ("notified", pa.bool_()),
        ("modified_at", MOMENT),
        ("expires_at", MOMENT),
    ]
)
STATE = pa.schema(
    [
        ("identity_hash", pa.binary(16)),
        ("entity_hash", pa.binary(16)),
        ("content_hash", pa.binary()),
        ("missing_since", MOMENT),
        ("withheld", pa.bool_()),
        ("expires_at", MOMENT),
    ]
)


class Row(NamedTuple):
    """One row of a snapshot: `identity` is `car1`, or `car1.speed` for an attribute."""

    identity: str
    verdict: ChangeKind = ChangeKind.SEND
    content: str | None = "new"
    minute: int | None = 0
    notified: bool = False
    ends: int | None = None


class Held(NamedTuple):
    """One row of a state."""

    identity: str
    missing: bool = False
    withheld: bool = False
    content: str = "old"
    ends: int | None = None


def hashed(name: str) -> bytes:
    """Returns sixteen bytes of a name."""
    return name.encode().ljust(16, b"\0")


def at(minute: int | None) -> datetime | None:
    """So many minutes after the morning."""
    return None if minute is None else MORNING + timedelta(minutes=minute)


def entity(identity: str) -> str:
    """Whose attribute it is."""
    return identity.partition(".")[0]


def snapshot(rows: Iterable[Row]) -> Any:
    """The table of these rows."""
    listed = [
        {
            "verdict": int(row.verdict),
            "identity_hash": hashed(row.identity),
            "entity_hash": hashed(entity(row.identity)),
            "content_hash": row.content.encode() if row.content and row.verdict <= ChangeKind.UNCHANGED else None,
            "notified": row.notified,
            "modified_at": at(row.minute),
            "expires_at": at(row.ends),
        }
        for row in rows
    ]
    return pa.Table.from_pylist(listed, schema=SNAPSHOT)


def state(rows: Iterable[Held]) -> Any:
    """The table of these rows."""
    listed = [
        {
            "identity_hash": hashed(row.identity),
            "entity_hash": hashed(entity(row.identity)),
            "content_hash": row.content.encode(),
            "missing_since": MORNING if row.missing else None,
            "withheld": row.withheld,
            "expires_at": at(row.ends),
        }
        for row in rows
    ]
    return pa.Table.from_pylist(listed, schema=STATE)
