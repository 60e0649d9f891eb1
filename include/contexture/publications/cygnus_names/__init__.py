"""Files that change names before topics are made of them: the grouping rules and name mappings of Cygnus."""

from __future__ import annotations

from contexture.publications.cygnus_names.grouping import GroupingRule, GroupingRules, check_grouping_rule
from contexture.publications.cygnus_names.java_regex import compile_java
from contexture.publications.cygnus_names.mappings import MappedNames, NameMappings

__all__ = ["GroupingRule", "GroupingRules", "MappedNames", "NameMappings", "check_grouping_rule", "compile_java"]
