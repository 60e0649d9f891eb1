"""Files that change names before topics are made of them: the grouping rules and name mappings of Cygnus."""

from __future__ import annotations

from contexture.publications.name_files.grouping import GroupingRule, GroupingRules, validity
from contexture.publications.name_files.java_regex import compile_java
from contexture.publications.name_files.mappings import MappedNames, NameMappings

__all__ = ["GroupingRule", "GroupingRules", "MappedNames", "NameMappings", "compile_java", "validity"]
