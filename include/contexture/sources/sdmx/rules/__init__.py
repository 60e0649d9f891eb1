"""Row rules of structures: what one must be to be published, and what is worth a warning."""

from __future__ import annotations

from contexture.events.rules import Rule, Severity, Violation
from contexture.sources.sdmx.rules.catalogue import REJECTING, RULES, StructureRuleOptions, severities, unknown_rules
from contexture.sources.sdmx.rules.checks import check, check_alone, unreadable
from contexture.sources.sdmx.rules.consistency import ConsistencyViolation, PublishedStructure, check_consistency

__all__ = [
    "REJECTING",
    "RULES",
    "ConsistencyViolation",
    "PublishedStructure",
    "Rule",
    "Severity",
    "StructureRuleOptions",
    "Violation",
    "check",
    "check_alone",
    "check_consistency",
    "severities",
    "unknown_rules",
    "unreadable",
]
