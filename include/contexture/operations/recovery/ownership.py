"""Whose record it is: the identity that a record tells, if this publication can have sent it.

What is taken for the publication's own gets a tombstone once the source lacks it. So a record counts only if its key
tells an identity that the publication selects, and if the publication would send that identity to that very topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import orjson

from contexture.errors import ContextureError
from contexture.events import AttributeName, ContextIdentity, identity_hash, identity_key
from contexture.kafka import ReplicaRecord
from contexture.operations.recovery.values import EntityReader, entity_reader
from contexture.publications import Publication
from contexture.publications.delivery import KEY_IDENTITY
from contexture.publications.fields import covers
from contexture.records.topics import TopicNamer
from contexture.records.topics.structure_routes import Router, router
from contexture.sources.ngsi.attributes import instance_key
from contexture.sources.sdmx import Selector, Urn

_URNS_KEPT = 10_000
_ENTITY_MEMBERS = 4


class Owned(NamedTuple):
    """The identity of a record: as state keeps it, and the hash of the entity it belongs to."""

    identity: bytes
    entity_hash: bytes


class Owner(Protocol):
    """Tells the records that a publication can have sent."""

    @property
    def topics(self) -> Sequence[str]:
        """Every identity is in each of these; empty where an identity's topics depend on it."""
        ...

    def of(self, record: ReplicaRecord) -> Owned | None:
        """The identity that a record with a value tells; None where the publication can not have sent it."""
        ...


class ContextOwner:
    """The records of a context broker's publication.

    Args:
        publication: whose; one that `check_rebuildable` lets pass.
    """

    def __init__(self, publication: Publication) -> None:
        self._namer = TopicNamer(publication.topics)
        self._selects = _selection(publication)
        self._by_attribute = publication.topics.data_model == "dm-by-attribute"
        self._keyed = publication.message.key == KEY_IDENTITY
        self._entity: EntityReader = entity_reader(publication)
        self._path = publication.source.service_path[0]
        self._service = publication.source.service
        fixed = publication.topics.naming == "fixed"
        self.topics: Sequence[str] = self._namer(ContextIdentity("", "/", "any", "")) if fixed else ()

    def of(self, record: ReplicaRecord) -> Owned | None:
        """By its key, or by its value where the key is only a part of the identity."""
        told = _of_key(record.key, self._by_attribute) if self._keyed else self._of_value(record.value)
        if told is None or not self._selects(told[0]):
            return None
        identity, attribute = told
        if record.topic not in self._topics_of(identity, attribute, record.value):
            return None
        return Owned(identity_key(identity, attribute), identity_hash(identity_key(identity)))

    def _topics_of(
        self, identity: ContextIdentity, attribute: AttributeName | None, value: bytes | None
    ) -> tuple[str, ...]:
        try:
            if attribute is None:
                return self._namer(identity)
            return self._namer(identity, attribute.name, self._type(attribute, value))
        except ContextureError:
            # What can't be named was never sent.
            return ()

    def _of_value(self, value: bytes | None) -> tuple[ContextIdentity, AttributeName | None] | None:
        entity = self._entity(value)
        name, kind = entity.get("id"), entity.get("type", "")
        if not isinstance(name, str) or not isinstance(kind, str):
            return None
        return ContextIdentity(self._service, self._path, name, kind), None

    def _type(self, attribute: AttributeName, value: bytes | None) -> str:
        """The attribute's type, by which name mappings may name its topic."""
        if not self._namer.rewrites:
            return ""
        member = self._entity(value).get(instance_key(attribute.name, attribute.dataset_id))
        kind = member.get("type") if isinstance(member, dict) else None
        return kind if isinstance(kind, str) else ""


class StructureOwner:
    """The records of a registry's publication.

    Args:
        publication: whose.
    """

    topics: Sequence[str] = ()

    def __init__(self, publication: Publication) -> None:
        selectors = [Selector.parse(text) for text in publication.source.select]
        routes = router(publication.topics)
        self._topics_of = lru_cache(_URNS_KEPT)(lambda urn: _topics_of(urn, selectors, routes))

    def of(self, record: ReplicaRecord) -> Owned | None:
        """By its key, a URN. Where a route takes the latest version alone, each version may have been that once."""
        try:
            urn = (record.key or b"").decode()
        except UnicodeDecodeError:
            return None
        if record.topic not in self._topics_of(urn):
            return None
        return Owned(urn.encode(), identity_hash(urn.encode()))


def owner_of(publication: Publication) -> Owner:
    """What tells the records of a publication."""
    return StructureOwner(publication) if publication.source.kind == "sdmx" else ContextOwner(publication)


def may_share(publication: Publication, other: Publication) -> bool:
    """Whether another publication may send the same identities, to the same topics perhaps."""
    if other.name == publication.name or other.publish.connection != publication.publish.connection:
        return False
    if other.source.kind != publication.source.kind:
        return False
    return other.source.kind == "sdmx" or other.source.service == publication.source.service


def _topics_of(urn: str, selectors: Sequence[Selector], routes: Router) -> frozenset[str]:
    try:
        is_maintainable = Urn.parse(urn).maintainable() == Urn.parse(urn)
    except ValueError:
        return frozenset()
    if not is_maintainable or (selectors and not any(selector.matches(urn) for selector in selectors)):
        return frozenset()
    return frozenset(routes.route([urn], held=[urn]).topics.get(urn, ()))


def _of_key(key: bytes | None, by_attribute: bool) -> tuple[ContextIdentity, AttributeName | None] | None:
    """What `identity_key` has written; None for any other key."""
    try:
        members = orjson.loads(key or b"")
    except orjson.JSONDecodeError:
        return None
    lengths = (_ENTITY_MEMBERS + 1, _ENTITY_MEMBERS + 2) if by_attribute else (_ENTITY_MEMBERS,)
    if not isinstance(members, list) or len(members) not in lengths:
        return None
    if not all(isinstance(each, str) for each in members) or orjson.dumps(members) != key:
        return None
    attribute = AttributeName(*members[_ENTITY_MEMBERS:]) if by_attribute else None
    return ContextIdentity(*members[:_ENTITY_MEMBERS]), attribute


def _selection(publication: Publication) -> Callable[[ContextIdentity], bool]:
    """Whether an identity is one that the publication asks its broker for, as far as identities tell."""
    source = publication.source
    is_linked_data = source.api == "ngsi-ld"
    id_pattern = re.compile(source.id_pattern) if source.id_pattern else None
    type_pattern = re.compile(source.type_pattern) if source.type_pattern else None

    def selects(identity: ContextIdentity) -> bool:
        # NGSI-LD joins several types; its scopes are no part of an identity.
        types = identity.type.split(",") if is_linked_data else [identity.type]
        return (
            identity.service == source.service
            and (is_linked_data or any(covers(path, identity.service_path) for path in source.service_path))
            and (not source.types or any(kind in source.types for kind in types))
            and (type_pattern is None or any(type_pattern.search(kind) for kind in types))
            and (not source.ids or identity.id in source.ids)
            and (id_pattern is None or bool(id_pattern.search(identity.id)))
        )

    return selects
