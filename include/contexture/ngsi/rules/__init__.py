"""Row rules: what one entity must be to be published, and what is worth a warning."""

from __future__ import annotations

from contexture.events.rules import Rule, Severity, Violation
from contexture.ngsi.rules.catalogue import RULES, unknown_rules
from contexture.ngsi.rules.checks import check, check_entity, unreadable
from contexture.ngsi.rules.options import Bounds, RuleOptions

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
