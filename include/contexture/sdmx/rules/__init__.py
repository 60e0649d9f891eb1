"""Row rules: what one structure must be to be published, and what is worth a warning, of it and of all that is held."""

from __future__ import annotations

from contexture.events.rules import Rule, Severity, Violation
from contexture.sdmx.rules.catalogue import REJECTING, RULES, severities, unknown_rules
from contexture.sdmx.rules.checks import check, check_alone, unreadable
from contexture.sdmx.rules.held import Broken, Told, check_held
from contexture.sdmx.rules.options import RuleOptions

__all__ = [
    "REJECTING",
    "RULES",
    "Broken",
    "Rule",
    "RuleOptions",
    "Severity",
    "Told",
    "Violation",
    "check",
    "check_alone",
    "check_held",
    "severities",
    "unknown_rules",
    "unreadable",
]
