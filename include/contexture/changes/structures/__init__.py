"""What a registry's changes mean for the topics: which records, in which transactions, and what the target has then."""

from __future__ import annotations

from contexture.changes.structures.events import (
    NO_CONTENT,
    HeldStructure,
    PlannedRecord,
    PlannedTransaction,
    Refused,
    StructureEvent,
    Telling,
)
from contexture.changes.structures.planning import StructurePlan, StructureRun, plan_structures
from contexture.changes.structures.routes import Destinations, Routes, newly_routed

__all__ = [
    "NO_CONTENT",
    "Destinations",
    "HeldStructure",
    "PlannedRecord",
    "PlannedTransaction",
    "Refused",
    "Routes",
    "StructureEvent",
    "StructurePlan",
    "StructureRun",
    "Telling",
    "newly_routed",
    "plan_structures",
]
