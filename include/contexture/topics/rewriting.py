"""Names before they are encoded: grouping rules and name mappings, as Cygnus puts them together.

Grouping decides path and entity, also where no rule matches; mappings then change only service and attribute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from contexture.events import ContextIdentity
from contexture.publications.cygnus_names import GroupingRules, MappedNames, NameMappings
from contexture.publications.topics import CYGNUS_2_19


class NameFiles(Protocol):
    """What a publication's `topics` say about grouping rules and name mappings."""

    @property
    def enable_grouping(self) -> bool: ...
    @property
    def grouping_rules_content(self) -> str | None: ...
    @property
    def enable_name_mappings(self) -> bool: ...
    @property
    def name_mappings_content(self) -> str | None: ...
    @property
    def compat(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Changes names; without rules and mappings there is none."""

    grouping: GroupingRules | None
    mappings: NameMappings | None
    compat: bool

    def __call__(self, identity: ContextIdentity, attribute: str | None, attribute_type: str) -> MappedNames:
        """The names that a topic is made of."""
        mapped = MappedNames(identity, attribute)
        if self.mappings is not None:
            mapped = self.mappings.map(identity, attribute, attribute_type)
        if self.grouping is not None:
            grouped = replace(self._grouped(self.grouping, identity), service=mapped.identity.service)
            mapped = MappedNames(grouped, mapped.attribute)
        return mapped

    def _grouped(self, rules: GroupingRules, identity: ContextIdentity) -> ContextIdentity:
        rule = rules.find(identity)
        if rule is not None:
            return ContextIdentity(identity.service, rule.service_path, rule.destination, "")
        if self.compat and identity.id and identity.type:
            # The interceptor of Cygnus joins them by `_`, unless its own enable_encoding is on.
            return replace(identity, id=f"{identity.id}_{identity.type}", type="")
        return identity


def rewriting(topics: NameFiles) -> Rewriting | None:
    """What changes names by a publication's `topics`; None when nothing does.

    Raises:
        ConfigurationError: a file's content is wrong.
    """
    compat = topics.compat == CYGNUS_2_19
    grouping = mappings = None
    if topics.enable_grouping and topics.grouping_rules_content is not None:
        grouping = GroupingRules.from_json(topics.grouping_rules_content, compat=compat)
    if topics.enable_name_mappings and topics.name_mappings_content is not None:
        mappings = NameMappings.from_json(topics.name_mappings_content, compat=compat)
    return Rewriting(grouping, mappings, compat) if grouping or mappings else None
