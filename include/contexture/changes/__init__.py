"""Comparing what a source shows with what the target holds."""

from __future__ import annotations

from contexture.changes.comparison import Comparison, compare
from contexture.changes.shrink import ShrinkGuard
from contexture.changes.succession import Deletion, Place, Succession, follow, overtaken
from contexture.changes.superseded import superseded_rows
from contexture.changes.verdicts import Verdict

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
