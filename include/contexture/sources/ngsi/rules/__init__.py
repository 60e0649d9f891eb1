"""Row rules: what one entity must be to be published, and what is worth a warning."""

from __future__ import annotations

from contexture.events.rules import Rule, Severity, Violation
from contexture.sources.ngsi.rules.catalogue import RULES, Bounds, EntityRuleOptions, unknown_rules
from contexture.sources.ngsi.rules.checks import check, check_entity, unreadable

__all__ = [
    "RULES",
    "Bounds",
    "EntityRuleOptions",
    "Rule",
    "Severity",
    "Violation",
    "check",
    "check_entity",
    "unknown_rules",
    "unreadable",
]
