"""Row rules: what one entity must be to be published, and what is worth a warning."""

from __future__ import annotations

from contexture.ngsi.rules.catalogue import RULES, Rule, Severity, unknown_rules
from contexture.ngsi.rules.checks import check, check_entity, unreadable
from contexture.ngsi.rules.options import Bounds, RuleOptions
from contexture.ngsi.rules.violation import Violation

__all__ = [
    "RULES",
    "Bounds",
    "Rule",
    "RuleOptions",
    "Severity",
    "Violation",
    "check",
    "check_entity",
    "unknown_rules",
    "unreadable",
]
