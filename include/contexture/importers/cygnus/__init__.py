"""From Cygnus to Contexture: an agent becomes publications, and every difference is listed."""

from __future__ import annotations

from contexture.importers.cygnus.differences import DIFFERENCES, Difference
from contexture.importers.cygnus.flume import JavaProperty, parse_properties, read_agents
from contexture.importers.cygnus.parameters import ParameterResult
from contexture.importers.cygnus.publications import Draft, ImportResult, RuleFiles, import_agent

__all__ = [
    "DIFFERENCES",
    "Difference",
    "Draft",
    "ImportResult",
    "JavaProperty",
    "ParameterResult",
    "RuleFiles",
    "import_agent",
    "parse_properties",
    "read_agents",
]
