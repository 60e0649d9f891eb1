"""From Cygnus to Contexture: an agent becomes publications, and every difference is listed."""

from __future__ import annotations

from contexture.importers.cygnus.differences import DIFFERENCES, Difference
from contexture.importers.cygnus.flume import JavaProperty, parse_properties, read_agents
from contexture.importers.cygnus.parameters import Explained
from contexture.importers.cygnus.publications import Draft, Files, Migration, migrate

__all__ = [
    "DIFFERENCES",
    "Difference",
    "Draft",
    "Explained",
    "Files",
    "JavaProperty",
    "Migration",
    "migrate",
    "parse_properties",
    "read_agents",
]
