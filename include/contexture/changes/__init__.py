"""Comparing what a source shows with what the target holds."""

from __future__ import annotations

from contexture.changes.comparison import Comparison, Verdict, compare
from contexture.changes.shrink import ShrinkGuard
from contexture.changes.succession import Deletion, Place, Succession, follow, overtaken

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
]
