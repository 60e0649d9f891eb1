"""Changes: what a snapshot of a source, compared with state, requires of Kafka."""

from __future__ import annotations

from contexture.records.changes.comparison import ChangeKind, Comparison, ShrinkGuard, compare, superseded_rows
from contexture.records.changes.sequence import (
    Deletion,
    EventSequence,
    find_superseded_notifications,
    replay_sequence,
)

__all__ = [
    "ChangeKind",
    "Comparison",
    "Deletion",
    "EventSequence",
    "ShrinkGuard",
    "compare",
    "find_superseded_notifications",
    "replay_sequence",
    "superseded_rows",
]
