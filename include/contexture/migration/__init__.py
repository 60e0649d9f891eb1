"""Moving over from what Contexture replaces: a Cygnus agent becomes publications, and every difference is said."""

from __future__ import annotations

from contexture.migration.agents import read_agents
from contexture.migration.comparison import Comparison, Side, compare
from contexture.migration.cygnus import Migration, migrate
from contexture.migration.differences import DIFFERENCES, Difference
from contexture.migration.drafts import Draft
from contexture.migration.explanations import Explained
from contexture.migration.java_properties import JavaProperty, parse_properties
from contexture.migration.rule_files import Files

__all__ = [
    "DIFFERENCES",
    "Comparison",
    "Difference",
    "Draft",
    "Explained",
    "Files",
    "JavaProperty",
    "Migration",
    "Side",
    "compare",
    "migrate",
    "parse_properties",
    "read_agents",
]
