"""Whose record it is: the identity in a record, if this publication can have sent it.

What is taken for the publication's own gets a tombstone once the source lacks it. So a record counts only if its key
is an identity that the publication selects, and if the publication would send that identity to that very topic.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

import orjson

from contexture.errors import ContextureError
from contexture.events import AttributeName, ContextIdentity, identity_hash, identity_key, parse_json
from contexture.kafka import TopicRecord
from contexture.operations.verification.contents import content_reader, place_of, structure_in_value
from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.publications.bounded_patterns import BoundedPattern
from contexture.publications.delivery import KEY_IDENTITY
from contexture.publications.fields import path_contains
from contexture.records.topics import TopicNamer
from contexture.records.topics.structure_routes import Router, router
from contexture.sources.ngsi.attributes import instance_key
from contexture.sources.sdmx import Selector, Urn

EntityReader = Callable[[bytes | None], Mapping[str, Any]]
"""Gives the entity in a value, or nothing of it where it can't be read."""


class ValueContent(NamedTuple):
    """What a value shows.

    Attributes:
        content: the content hash, as state has it; None where the value does not show it.
        references: URNs of the structures that a structure refers to.
    """

    content: bytes | None
    references: tuple[str, ...] = ()


ValueReader = Callable[[bytes], ValueContent]


def value_reader(publication: Publication) -> ValueReader:
    """Returns what reads the content of a publication's values."""
    structured = publication.message.envelope == "cloudevents-structured"
    if publication.message.format == "sdmx":

        def read(value: bytes) -> ValueContent:
            content, references = structure_in_value(value, structured=structured)
            return ValueContent(content or None, references)

        return read
    content_of = content_reader(publication)
    if content_of is None:
        return lambda value: ValueContent(None)
    return lambda value: ValueContent(content_of(value) or None)


def entity_reader(publication: Publication) -> EntityReader:
    """What gives the entities in the values of a publication whose format is ngsiv2."""
    structured = publication.message.envelope == "cloudevents-structured"

    def read(value: bytes | None) -> Mapping[str, Any]:
        try:
            found = parse_json(value or b"")
        except (ValueError, TypeError, RecursionError):
            return {}
        if structured and isinstance(found, dict):
            found = found.get("data")
        return found if isinstance(found, dict) else {}

    return read


_URNS_KEPT = 10_000
_ENTITY_MEMBERS = 4


class Owned(NamedTuple):
    """The identity of a record: as state keeps it, and the hash of the entity it belongs to."""

    identity: bytes
    entity_hash: bytes


class Owner(Protocol):
    """Recognises the records that a publication can have sent."""

    @property
    def topics(self) -> Sequence[str]:
        """Every identity is in each of these; empty where an identity's topics depend on it."""
        ...

    def of(self, record: TopicRecord) -> Owned | None:
        """The identity that a record with a value shows; None where the publication can not have sent it."""
        ...


class ContextOwner:
    """The records of a context broker's publication.

    Args:
        publication: whose; one that `check_rebuildable` lets pass.
    """

    def __init__(self, publication: NgsiPublication) -> None:
        self._namer = TopicNamer(publication.topics)
        self._selects = _selection(publication)
        self._by_attribute = publication.topics.data_model == "dm-by-attribute"
        self._keyed = publication.message.key == KEY_IDENTITY
        self._entity: EntityReader = entity_reader(publication)
        self._path = publication.source.service_path[0]
        self._service = publication.source.service
        fixed = publication.topics.naming == "fixed"
        self.topics: Sequence[str] = self._namer(ContextIdentity("", "/", "any", "")) if fixed else ()

    def of(self, record: TopicRecord) -> Owned | None:
        """By its key, or by its value where the key is only a part of the identity."""
        found = _of_key(record.key, self._by_attribute) if self._keyed else self._of_value(record.value)
        if found is None or not self._selects(found[0]):
            return None
        identity, attribute = found
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

    def __init__(self, publication: SdmxPublication) -> None:
        selectors = [Selector.parse(text) for text in publication.source.select]
        routes = router(publication.topics)
        self._topics_of = lru_cache(_URNS_KEPT)(lambda urn: _topics_of(urn, selectors, routes))

    def of(self, record: TopicRecord) -> Owned | None:
        """By its key, a URN. Where a route takes the latest version alone, each version may have been that once."""
        try:
            urn = (record.key or b"").decode()
        except UnicodeDecodeError:
            return None
        if record.topic not in self._topics_of(urn):
            return None
        return Owned(urn.encode(), identity_hash(urn.encode()))


def owner_of(publication: Publication) -> Owner:
    """Returns what recognises the records of a publication."""
    if isinstance(publication, SdmxPublication):
        return StructureOwner(publication)
    return ContextOwner(NgsiPublication.of(publication))


def may_share(publication: Publication, other: Publication) -> bool:
    """Whether another publication may send the same identities, to the same topics perhaps."""
    if other.name == publication.name or other.publish.connection != publication.publish.connection:
        return False
    if other.source.kind != publication.source.kind:
        return False
    return other.source.tenant == publication.source.tenant


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


def _selection(publication: NgsiPublication) -> Callable[[ContextIdentity], bool]:
    """Whether an identity is one that the publication asks its broker for, as far as identities show."""
    source = publication.source
    is_linked_data = source.api == "ngsi-ld"
    id_pattern = BoundedPattern.compiled(source.id_pattern) if source.id_pattern else None
    type_pattern = BoundedPattern.compiled(source.type_pattern) if source.type_pattern else None

    def selects(identity: ContextIdentity) -> bool:
        # NGSI-LD joins several types; its scopes are no part of an identity.
        types = identity.type.split(",") if is_linked_data else [identity.type]
        return (
            identity.service == source.service
            and (is_linked_data or any(path_contains(path, identity.service_path) for path in source.service_path))
            and (not source.types or any(kind in source.types for kind in types))
            and (type_pattern is None or any(type_pattern.search(kind) for kind in types))
            and (not source.ids or identity.id in source.ids)
            and (id_pattern is None or bool(id_pattern.search(identity.id)))
        )

    return selects


_SCHEMA: Final = """
CREATE TABLE found (place BLOB, partition INT, topic TEXT, key BLOB, identity BLOB, entity_hash BLOB, content BLOB,
    refers TEXT, unclaimed TEXT, PRIMARY KEY (place, partition)) WITHOUT ROWID;
CREATE TABLE known (identity_hash BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_FOUND: Final = "INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ROWS: Final = (
    "SELECT identity, entity_hash, topic, key, content, refers FROM found WHERE unclaimed IS NULL "
    "ORDER BY identity, topic, partition"
)

_Row = tuple[bytes, bytes, str, bytes | None, bytes | None, str]

FOREIGN = "of another publication, or of what this one does not select"
SHARED = "of several publications alike, so that their owner is unknown"


class Gathered(NamedTuple):
    """What the topics hold of one identity.

    Attributes:
        identity, entity_hash: as state has them.
        topics: where it is.
        key: of its records.
        content: its content hash; None where topics differ, or where no value shows it.
        references: of a structure.
    """

    identity: bytes
    entity_hash: bytes
    topics: tuple[str, ...]
    key: bytes | None
    content: bytes | None
    references: tuple[str, ...]


class LastRecords:
    """Takes records, each partition in its order, then gives what is there of each identity.

    Args:
        database: an empty one.
        owner: shows the publication's own records.
        others: recognise those of publications that may send to the same topics.
        read: shows what values hold.
    """

    def __init__(self, database: sqlite3.Connection, owner: Owner, others: Sequence[Owner], read: ValueReader) -> None:
        self._database, self._owner, self._others, self._read = database, owner, others, read
        self._database.executescript(_SCHEMA)

    def add_known(self, identity_hashes: Iterable[bytes]) -> None:
        """Adds identities that state holds already: nothing is made of them."""
        self._database.executemany("INSERT OR IGNORE INTO known VALUES (?)", ((each,) for each in identity_hashes))

    def add(self, record: TopicRecord) -> None:
        """Adds a record; each partition comes in its order."""
        place = place_of(record.topic, record.key)
        if record.value is None:
            self._database.execute("DELETE FROM found WHERE place = ? AND partition = ?", (place, record.partition))
            return
        owned = self._owner.of(record)
        if owned is None or any(other.of(record) is not None for other in self._others):
            why = FOREIGN if owned is None else SHARED
            self._database.execute(_FOUND, (place, record.partition, *(None,) * 6, why))
            return
        content = self._read(record.value)
        row = (record.topic, record.key, *owned, content.content, json.dumps(content.references), None)
        self._database.execute(_FOUND, (place, record.partition, *row))

    def count_unclaimed(self) -> dict[str, int]:
        """Returns of how many keys nothing is made, by reason."""
        rows = self._database.execute(
            "SELECT unclaimed, COUNT(*) FROM found WHERE unclaimed IS NOT NULL GROUP BY 1 ORDER BY 1"
        )
        return {str(why): int(count) for why, count in rows}

    def known(self) -> int:
        """How many identities state holds already."""
        return int(self._database.execute("SELECT COUNT(*) FROM known").fetchone()[0])

    def identities(self) -> Iterator[Gathered]:
        """What the topics hold of each identity that state does not know, in order."""
        for identity, rows in groupby(self._database.execute(_ROWS), key=lambda row: bytes(row[0])):
            known = self._database.execute("SELECT 1 FROM known WHERE identity_hash = ?", (identity_hash(identity),))
            if known.fetchone() is None:
                yield self._gathered(identity, list(rows))

    def _gathered(self, identity: bytes, rows: Sequence[_Row]) -> Gathered:
        topics = dict.fromkeys(row[2] for row in rows)
        fixed = tuple(topic for topic in self._owner.topics if topic in topics)
        contents = {row[4] for row in rows}
        # What one topic lacks has to be sent to all of them.
        content = contents.pop() if len(contents) == 1 and len(fixed) == len(self._owner.topics) else None
        *_, (_, entity_hash, _, key, _, refers) = rows
        return Gathered(identity, entity_hash, fixed or tuple(topics), key, content, tuple(json.loads(refers)))
