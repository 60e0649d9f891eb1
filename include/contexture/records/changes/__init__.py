"""Changes: what a snapshot of a source, compared with state, requires of Kafka."""

from __future__ import annotations

from contexture.records.changes.comparison import Comparison, ShrinkGuard, Verdict, compare
from contexture.records.changes.sequence import Deletion, Place, Succession, follow, overtaken
from contexture.records.changes.superseded import superseded_rows

__all__ = [
    "Comparison",
    "Deletion",
    "Place",
    "ShrinkGuard",
    "Succession",
    "Verdict",
    "compare",
    "follow",
    "overtaken",
    "superseded_rows",
]
