"""Comparing what a source shows with what the target holds."""

from __future__ import annotations

from contexture.changes.comparison import Comparison, Verdict, compare
from contexture.changes.shrink import ShrinkGuard

__all__ = ["Comparison", "ShrinkGuard", "Verdict", "compare"]
