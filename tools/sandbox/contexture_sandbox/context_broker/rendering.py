"""Entities as the API shows them: which attributes and metadata, in which form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from contexture_sandbox.context_broker.model import (
    StoredAttribute,
    StoredEntity,
    attribute_times,
    json_text,
    member_head,
    time_attribute,
)

ENTITY_BUILTINS = ("dateCreated", "dateModified", "dateExpires", "servicePath")

NO_METADATA = b',"metadata":{}},'


@dataclass(frozen=True, slots=True)
class Form:
    """What to show.

    Attributes:
        representation: normalized, keyValues, values or unique.
        attrs: the `attrs` parameter; empty shows all attributes of the user and no builtin.
        metadata: the `metadata` parameter; empty shows all metadata of the user and no builtin.
        sort: attributes in byte order (an answer), or as they were given (a notification).
    """

    representation: str = "normalized"
    attrs: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    sort: bool = True

    def renderer(self) -> Callable[[StoredEntity], bytes]:
        """The function that writes one entity as JSON."""
        return {
            "normalized": self._normalized,
            "keyValues": self._key_values,
            "values": self._values,
            "unique": self._unique,
        }[self.representation]

    def page(self, entities: list[StoredEntity]) -> bytes:
        """A JSON array of entities."""
        return b"[" + b",".join(map(self.renderer(), entities)) + b"]"

    def attribute(self, attribute: StoredAttribute) -> bytes:
        """One attribute as a JSON object."""
        head = b'{"type":' + json_text(attribute.type) + b',"value":' + attribute.value
        return head + b',"metadata":{' + self._metadata(attribute) + b"}}"

    def _normalized(self, entity: StoredEntity) -> bytes:
        if entity.verbatim is not None:
            return self._verbatim(entity)
        parts = [b'"id":' + json_text(entity.id) + b',"type":' + json_text(entity.type)]
        if self._lists_all:
            if entity.attributes:
                parts.append(self._all_attributes(entity))
            parts.extend(part for name in self._listed_builtins(entity) if (part := _builtin(entity, name)) is not None)
        else:
            for name, attribute in self._members(entity):
                one = attribute if isinstance(attribute, bytes) else json_text(name) + b":" + self.attribute(attribute)
                parts.append(one)
        return b"{" + b",".join(parts) + b"}"

    def _all_attributes(self, entity: StoredEntity) -> bytes:
        """All attributes of the user, remembered with the entity: a page is read more often than it changes."""
        if entity.rendered and entity.rendered[0][0] == (self.metadata, self.sort):
            return entity.rendered[0][1]
        attributes = entity.attributes
        parts: list[bytes] = []
        for name in sorted(attributes) if self.sort else attributes:
            attribute = attributes[name]
            plain = not self.metadata and not attribute.metadata
            metadata = NO_METADATA if plain else b',"metadata":{' + self._metadata(attribute) + b"}},"
            parts += (member_head(name, attribute.type), attribute.value, metadata)
        text = b"".join(parts)[:-1]
        entity.rendered[:] = [((self.metadata, self.sort), text)]
        return text

    @property
    def _lists_all(self) -> bool:
        return not self.attrs or "*" in self.attrs

    def _listed_builtins(self, entity: StoredEntity) -> tuple[str, ...]:
        return tuple(name for name in ENTITY_BUILTINS if name in self.attrs and name not in entity.attributes)

    def _verbatim(self, entity: StoredEntity) -> bytes:
        body = (entity.verbatim or b"{}").strip()
        inner = body[1:-1].strip()
        wanted = [name for name in ENTITY_BUILTINS if name in self.attrs and json_text(name) not in inner]
        builtins = [part for name in wanted if (part := _builtin(entity, name)) is not None]
        return b"{" + b",".join([inner, *builtins] if inner else builtins) + b"}"

    def _key_values(self, entity: StoredEntity) -> bytes:
        parts = [b'"id":' + json_text(entity.id) + b',"type":' + json_text(entity.type)]
        parts.extend(json_text(name) + b":" + _plain_value(entity, name, attribute)
                     for name, attribute in self._members(entity))  # fmt: skip
        return b"{" + b",".join(parts) + b"}"

    def _values(self, entity: StoredEntity) -> bytes:
        return b"[" + b",".join(_plain_value(entity, *member) for member in self._members(entity)) + b"]"

    def _unique(self, entity: StoredEntity) -> bytes:
        values = dict.fromkeys(_plain_value(entity, *member) for member in self._members(entity))
        return b"[" + b",".join(values) + b"]"

    def _members(self, entity: StoredEntity) -> Iterator[tuple[str, StoredAttribute | bytes]]:
        attributes = entity.attributes
        wanted: Iterable[str] = dict.fromkeys(self.attrs)
        if self._lists_all:
            wanted = [*(sorted(attributes) if self.sort else attributes), *self._listed_builtins(entity)]
        for name in wanted:
            if name in attributes:
                yield name, attributes[name]
            elif (part := _builtin(entity, name)) is not None:
                yield name, part

    def _metadata(self, attribute: StoredAttribute) -> bytes:
        """The members of an attribute's metadata object; one of the user's hides a builtin of the same name."""
        listed = self.metadata
        if not attribute.metadata:
            return attribute_times(attribute.created_at_us, attribute.modified_at_us, listed) if listed else b""
        users = [
            json_text(name) + b":" + value
            for name, value in attribute.metadata
            if not listed or "*" in listed or name in listed
        ]
        names = tuple(name for name in listed if name not in dict(attribute.metadata))
        times = attribute_times(attribute.created_at_us, attribute.modified_at_us, names)
        return b",".join([*users, times] if times else users)


def _builtin(entity: StoredEntity, name: str) -> bytes | None:
    if name == "servicePath":
        return b'"servicePath":{"type":"Text","value":' + json_text(entity.service_path) + b',"metadata":{}}'
    moments = {
        "dateCreated": entity.created_at_us,
        "dateModified": entity.modified_at_us,
        "dateExpires": entity.expires_at_us,
    }
    moment = moments.get(name)
    return None if moment is None else time_attribute(name, moment, of_entity=True)


def _plain_value(entity: StoredEntity, name: str, attribute: StoredAttribute | bytes) -> bytes:
    if isinstance(attribute, StoredAttribute):
        return attribute.value
    shown_attribute = orjson.loads(b"{" + attribute + b"}")[name]
    return orjson.dumps(shown_attribute["value"])
