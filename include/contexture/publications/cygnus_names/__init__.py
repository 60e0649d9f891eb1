"""Files that change names before topics are made of them: the grouping rules and name mappings of Cygnus."""

from __future__ import annotations

from contexture.publications.cygnus_names.grouping import GroupingRules, check_grouping_rule
from contexture.publications.cygnus_names.mappings import MappedNames, NameMappings

__all__ = ["GroupingRules", "MappedNames", "NameMappings", "check_grouping_rule"]
