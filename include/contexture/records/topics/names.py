"""Topic names of a publication: the data models of Cygnus, and fixed topics.

    dm-by-service        service
    dm-by-service-path   service xffff path
    dm-by-entity         service xffff path xffff id xffff type
    dm-by-attribute      service xffff path xffff id xffff type xffff attribute

Every part is encoded by `encodings.encode_cygnus`; the root path is a part like any other; an absent id or type leaves
no dangling concatenator; lower case, when set, comes last. `encodings` also has the names of older releases, and names
that can be read back. Grouping decides path and entity, also where no rule matches; mappings change service and
attribute alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from contexture.errors import ConfigurationError, DefectError
from contexture.events import ContextIdentity
from contexture.events.text_cache import cache_by_text
from contexture.publications.cygnus_names import GroupingRules, MappedNames, NameMappings
from contexture.publications.topics import CYGNUS_2_19
from contexture.records.topics import encodings
from contexture.records.topics.encodings import (
    CONCATENATOR,
    MAXIMUM_LENGTH,
    NameMaker,
    TopicNameError,
    check_attribute,
    check_legal,
    encode_cygnus,
    name_parts,
)


class NameFiles(Protocol):
    """The settings of a publication's `topics` for grouping rules and name mappings."""

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
class NameRewriting:
    """The grouping rules and name mappings of a publication, at least one of them."""

    grouping: GroupingRules | None
    mappings: NameMappings | None
    compat: bool

    def __call__(self, identity: ContextIdentity, attribute: str | None, attribute_type: str) -> MappedNames:
        """Returns the names that a topic is made of."""
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


def build_rewriting(topics: NameFiles) -> NameRewriting | None:
    """Returns the rewriting of names by a publication's `topics`; None without rules and mappings.

    Raises:
        ConfigurationError: a file's content is wrong.
    """
    compat = topics.compat == CYGNUS_2_19
    grouping = mappings = None
    if topics.enable_grouping and topics.grouping_rules_content is not None:
        grouping = GroupingRules.from_json(topics.grouping_rules_content, compat=compat)
    if topics.enable_name_mappings and topics.name_mappings_content is not None:
        mappings = NameMappings.from_json(topics.name_mappings_content, compat=compat)
    return NameRewriting(grouping, mappings, compat) if grouping or mappings else None


_CACHED_PARTS = 8192
_LONGEST_RESERVED = len("..")


class TopicNaming(NameFiles, Protocol):
    """The settings of a publication's `topics` that naming needs."""

    @property
    def naming(self) -> str: ...
    @property
    def cygnus_version(self) -> str | None: ...
    @property
    def data_model(self) -> str: ...
    @property
    def enable_lowercase(self) -> bool: ...
    @property
    def topics(self) -> Sequence[str]: ...


class TopicNamer:
    """The topic names of one publication; made once, called for every event.

    Args:
        naming: the publication's `topics`.

    Raises:
        ConfigurationError: the naming or the data model isn't supported.
        TopicNameError: a fixed topic is illegal.
    """

    __slots__ = ("_data_model", "_fixed", "_lowercase", "_make", "_rewrite")

    def __init__(self, naming: TopicNaming) -> None:
        self._lowercase = naming.enable_lowercase or _always_in_lower_case(naming)
        self._data_model = naming.data_model
        self._fixed: tuple[str, ...] = ()
        self._make: NameMaker = _no_single_name
        self._rewrite = build_rewriting(naming)
        if naming.naming == "fixed":
            self._fixed = _fixed_topics(naming)
        else:
            self._make = _name_maker(naming)

    def __call__(
        self, identity: ContextIdentity, attribute: str | None = None, attribute_type: str = ""
    ) -> tuple[str, ...]:
        """Returns every topic of the event, each legal (raises `TopicNameError` otherwise)."""
        return self._fixed or (self.name(identity, attribute, attribute_type),)

    @property
    def rewrites(self) -> bool:
        """Returns whether grouping rules or name mappings change what names are made of."""
        return self._rewrite is not None

    def header_service(self, identity: ContextIdentity, _attribute: str | None = None) -> str:
        """Returns the service of cygnus-lines: the mapped one, as Cygnus does; path and entity stay original."""
        mappings = self._rewrite.mappings if self._rewrite is not None else None
        return identity.service if mappings is None else mappings.service(identity.service)

    def names(self, identity: ContextIdentity, attribute: str | None = None, attribute_type: str = "") -> MappedNames:
        """Returns what the topic's name is made of, changed by grouping rules and name mappings."""
        if self._rewrite is None:
            return MappedNames(identity, attribute)
        return self._rewrite(identity, attribute, attribute_type)

    def parts(
        self, identity: ContextIdentity, attribute: str | None = None, attribute_type: str = ""
    ) -> tuple[str, ...]:
        """Returns what the one topic's name represents: events with other parts of the same topic collide."""
        return name_parts(self._data_model, *self.names(identity, attribute, attribute_type))

    def name(self, identity: ContextIdentity, attribute: str | None = None, attribute_type: str = "") -> str:
        """Returns the one topic of the event; the attribute's type counts for name mappings only.

        Raises:
            TopicNameError: there are several, or the name is illegal.
        """
        if self._fixed:
            return _only(self._fixed)
        if self._rewrite is not None:
            identity, attribute = self._rewrite(identity, attribute, attribute_type)
        name = self._make(identity, attribute)
        if self._lowercase:
            name = name.lower()
        # Encoded names hold legal characters only, so that the common case needs no check of them.
        return name if _LONGEST_RESERVED < len(name) <= MAXIMUM_LENGTH else check_legal(name)


def _fixed_topics(naming: TopicNaming) -> tuple[str, ...]:
    topics = tuple(check_legal(topic.lower() if naming.enable_lowercase else topic) for topic in naming.topics)
    if not topics:
        raise ConfigurationError("topics.naming is fixed, but no topic is listed", next_step="list topics.topics")
    return topics


def _only(topics: tuple[str, ...]) -> str:
    if len(topics) == 1:
        return topics[0]
    raise TopicNameError(
        f"the event goes to {len(topics)} fixed topics, not to one", next_step="call the namer for all", topics=topics
    )


def _name_maker(naming: TopicNaming) -> NameMaker:
    if naming.data_model not in _BY_DATA_MODEL or naming.naming not in {"cygnus", "cygnus-legacy", "injective"}:
        raise ConfigurationError(
            f"topics.naming {naming.naming} with data_model {naming.data_model} is not supported",
            next_step=f"use naming fixed, or cygnus with one of {', '.join(_BY_DATA_MODEL)}",
        )
    if naming.naming == "injective":
        return encodings.injective_names(naming.data_model)
    version = _release(naming)
    if version is not None and version <= encodings.LAST_LEGACY:
        return encodings.legacy_names(naming.data_model)
    if version is not None and version <= encodings.LAST_PARTIAL:
        return encodings.partial_names(naming.data_model)
    return _BY_DATA_MODEL[naming.data_model]


def _release(naming: TopicNaming) -> tuple[int, int] | None:
    if naming.cygnus_version is not None:
        return encodings.release(naming.cygnus_version)
    return encodings.LAST_LEGACY if naming.naming == "cygnus-legacy" else None


def _always_in_lower_case(naming: TopicNaming) -> bool:
    version = _release(naming)
    return version is not None and encodings.LAST_PARTIAL < version <= encodings.LAST_LOWER_CASE


def _no_single_name(identity: ContextIdentity, attribute: str | None) -> str:
    raise DefectError("a fixed naming cannot build a name", next_step="report this", identity=identity)


def _by_service(identity: ContextIdentity, _attribute: str | None) -> str:
    return _part(identity.service)


def _by_service_path(identity: ContextIdentity, _attribute: str | None) -> str:
    return _service_and_path(identity.service, identity.service_path)


def _by_entity(identity: ContextIdentity, _attribute: str | None) -> str:
    entity_id = identity.id
    if not entity_id:
        return _by_type_alone(identity)
    head = _service_and_path(identity.service, identity.service_path)
    return f"{head}{CONCATENATOR}{encode_cygnus(entity_id)}{_type_suffix(identity.type)}"


def _by_attribute(identity: ContextIdentity, attribute: str | None) -> str:
    return f"{_by_entity(identity, None)}{CONCATENATOR}{_part(check_attribute(attribute, identity))}"


def _by_type_alone(identity: ContextIdentity) -> str:
    if not identity.type:
        raise TopicNameError(
            "an entity without id and type has no topic", next_step="correct it in its source", identity=identity
        )
    return f"{_service_and_path(identity.service, identity.service_path)}{CONCATENATOR}{_part(identity.type)}"


# Services, paths, types and attribute names come back all the time; ids don't, so only those are encoded each time.
_part = cache_by_text(_CACHED_PARTS)(encode_cygnus)


@lru_cache(_CACHED_PARTS)
def _service_and_path(service: str, service_path: str) -> str:
    return f"{encode_cygnus(service)}{CONCATENATOR}{encode_cygnus(service_path)}"


@cache_by_text(_CACHED_PARTS)
def _type_suffix(entity_type: str) -> str:
    return f"{CONCATENATOR}{encode_cygnus(entity_type)}" if entity_type else ""


_BY_DATA_MODEL: dict[str, NameMaker] = {
    "dm-by-service": _by_service,
    "dm-by-service-path": _by_service_path,
    "dm-by-entity": _by_entity,
    "dm-by-attribute": _by_attribute,
}
