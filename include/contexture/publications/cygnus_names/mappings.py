"""Name mappings of Cygnus: services, paths, entities and attributes get other names before topics are made of them.

Each `original*` is a Java expression for the whole name (absent: any name); `newService`, `newServicePath` and
`newEntityId` are replacements with groups, `newEntityType` and `newAttributeName` literal; an absent `new*` changes
nothing. At every level the first mapping that matches counts.

With `compat` three quirks of Cygnus change names as they do there: `.*` replaces twice; a path is mapped when, and only
when, one of its entity mappings matches the type; and where no entity mapping matches, the attributes of the last one
are mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity
from contexture.publications.bounded_patterns import BoundedPattern
from contexture.publications.cygnus_names import files
from contexture.publications.cygnus_names.java_regex import Replacement, compile_java, replacement

MEMBER = "serviceMappings"
_ANY = "^(.*)"
_MISSPELT = 0.85
T = TypeVar("T")


class MappedNames(NamedTuple):
    """The identity and the attribute's name by which topics are named."""

    identity: ContextIdentity
    attribute: str | None


@dataclass(frozen=True, slots=True)
class _Rename:
    """An expression and what names become that match it."""

    pattern: BoundedPattern
    new: Replacement | str | None

    def matches(self, name: str) -> bool:
        return self.pattern.fullmatch(name) is not None

    def apply(self, name: str, compat: bool) -> str:
        if not isinstance(self.new, Replacement):
            return name if self.new is None else self.new
        if compat:
            return self.new.everywhere(self.pattern, name)
        match = self.pattern.fullmatch(name)
        return name if match is None else self.new.expand(match)


@dataclass(frozen=True, slots=True)
class _Attribute:
    name: _Rename
    type: _Rename

    def matches(self, name: str, attribute_type: str) -> bool:
        return self.name.matches(name) and self.type.matches(attribute_type)


@dataclass(frozen=True, slots=True)
class _Entity:
    id: _Rename
    type: _Rename
    attributes: tuple[_Attribute, ...]

    def matches(self, identity: ContextIdentity) -> bool:
        return self.id.matches(identity.id) and self.type.matches(identity.type)


@dataclass(frozen=True, slots=True)
class _Path:
    path: _Rename
    entities: tuple[_Entity, ...]

    def matches(self, identity: ContextIdentity, compat: bool) -> bool:
        if not self.path.matches(identity.service_path):
            return False
        return not compat or any(entity.type.matches(identity.type) for entity in self.entities)


@dataclass(frozen=True, slots=True)
class _Service:
    service: _Rename
    paths: tuple[_Path, ...]


@dataclass(frozen=True, slots=True)
class NameMappings:
    """The mappings of a file, and whether the quirks of Cygnus are wanted."""

    services: tuple[_Service, ...]
    compat: bool = False

    @classmethod
    def from_json(cls, text: str, *, compat: bool = False) -> NameMappings:
        """Returns the mappings of a file's text.

        Raises:
            ConfigurationError: it is no such file, or an expression or a replacement can't be used.
        """
        return cls(tuple(_service(item) for item in _objects(files.parse(text, MEMBER), MEMBER)), compat)

    def service(self, service: str) -> str:
        """Returns the mapped service."""
        mapping = self._find(service)
        return service if mapping is None else mapping.service.apply(service, self.compat)

    def map(self, identity: ContextIdentity, attribute: str | None, attribute_type: str = "") -> MappedNames:
        """Returns the names by which the topic of an entity, or of one of its attributes, is named."""
        mapping = self._find(identity.service)
        if mapping is None:
            return MappedNames(identity, attribute)
        service, path, id_, type_ = identity.service, identity.service_path, identity.id, identity.type
        service = mapping.service.apply(service, self.compat)
        below = next((each for each in mapping.paths if each.matches(identity, self.compat)), None)
        if below is not None:
            path = below.path.apply(path, self.compat)
            entity = next((each for each in below.entities if each.matches(identity)), None)
            if entity is not None:
                id_, type_ = entity.id.apply(id_, self.compat), entity.type.apply(type_, self.compat)
            elif self.compat and below.entities:
                entity = below.entities[-1]
            attribute = _mapped_attribute(entity, attribute, attribute_type)
        return MappedNames(ContextIdentity(service, path, id_, type_), attribute)

    def _find(self, service: str) -> _Service | None:
        return next((each for each in self.services if each.service.matches(service)), None)


def _mapped_attribute(entity: _Entity | None, attribute: str | None, attribute_type: str) -> str | None:
    if entity is None or attribute is None:
        return attribute
    mapping = next((each for each in entity.attributes if each.matches(attribute, attribute_type)), None)
    return attribute if mapping is None else mapping.name.apply(attribute, compat=False)


def _service(item: Mapping[str, object]) -> _Service:
    _check_members(item, "originalService", "newService", "servicePathMappings")
    rename = _rename(item, "originalService", "newService", with_groups=True)
    return _Service(rename, _below(item, "servicePathMappings", _path))


def _path(item: Mapping[str, object]) -> _Path:
    _check_members(item, "originalServicePath", "newServicePath", "entityMappings")
    rename = _rename(item, "originalServicePath", "newServicePath", with_groups=True)
    return _Path(rename, _below(item, "entityMappings", _entity))


def _entity(item: Mapping[str, object]) -> _Entity:
    names = ("originalEntityId", "newEntityId", "originalEntityType", "newEntityType")
    _check_members(item, *names, "attributeMappings")
    return _Entity(
        _rename(item, "originalEntityId", "newEntityId", with_groups=True),
        _rename(item, "originalEntityType", "newEntityType", with_groups=False),
        _below(item, "attributeMappings", _attribute),
    )


def _attribute(item: Mapping[str, object]) -> _Attribute:
    _check_members(item, "originalAttributeName", "newAttributeName", "originalAttributeType", "newAttributeType")
    return _Attribute(
        _rename(item, "originalAttributeName", "newAttributeName", with_groups=False),
        _rename(item, "originalAttributeType", "newAttributeType", with_groups=False),
    )


def _check_members(item: Mapping[str, object], *known: str) -> None:
    """Refuses a misspelt member, without which a mapping would match everything; others are comments to Cygnus."""
    by_form = {name.lower(): name for name in known}
    for name in (each for each in item if each not in known):
        nearest = get_close_matches(name.lower(), by_form, n=1, cutoff=_MISSPELT)
        if nearest:
            raise ConfigurationError(
                f"a mapping has the unknown member {name!r}",
                next_step=f"write {by_form[nearest[0]]!r}, or leave it out",
            )


def _rename(item: Mapping[str, object], original: str, new: str, *, with_groups: bool) -> _Rename:
    pattern = compile_java(_text(item, original) or _ANY)
    written = _text(item, new)
    return _Rename(pattern, replacement(written, pattern) if written is not None and with_groups else written)


def _text(item: Mapping[str, object], member: str) -> str | None:
    value = item.get(member)
    if value is None or isinstance(value, str):
        return value
    raise ConfigurationError(f"{member} is not text: {value!r}", next_step="correct it in the file of name mappings")


def _below(item: Mapping[str, object], member: str, make: Callable[[Mapping[str, object]], T]) -> tuple[T, ...]:
    listed = item.get(member)
    return tuple(make(each) for each in _objects([] if listed is None else listed, member))


def _objects(listed: object, member: str) -> list[dict[str, object]]:
    if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
        return listed
    raise ConfigurationError(f"{member} is not a list of objects", next_step="correct it in the file of name mappings")
