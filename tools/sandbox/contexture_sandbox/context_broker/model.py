"""Entities as the broker stores them: JSON text in pieces, so that a page is put together without encoding anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import orjson

from contexture_sandbox.context_broker.times import shown

DATE_TYPES = frozenset({"DateTime", "ISO8601"})
Key = tuple[str, str, str]
"""Service path, id, type: what is unique within one tenant."""


@dataclass(frozen=True, slots=True)
class StoredAttribute:
    """One attribute.

    Attributes:
        type: NGSI type, advisory.
        value: JSON text of the value, as the API shows it.
        metadata: name and JSON text of every metadata, in the order they are shown.
        created_at_us: microseconds since 1970; None where the data never had it.
        modified_at_us: the same for the last change of value, type or metadata.
    """

    type: str
    value: bytes
    metadata: tuple[tuple[str, bytes], ...]
    created_at_us: int | None
    modified_at_us: int | None

    def same_content(self, other: StoredAttribute) -> bool:
        """Whether the other says the same, whenever it said it."""
        return self.value == other.value and self.type == other.type and self.metadata == other.metadata

    def decoded(self) -> object:
        """The value as Python sees it."""
        return orjson.loads(self.value)


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """One entity of one tenant; `attributes` is in the order given by the last writer.

    Attributes:
        verbatim: the JSON text of an object that is no normalized entity (it came by the load hook): shown as it is.
    """

    service_path: str
    id: str
    type: str
    attributes: dict[str, StoredAttribute]
    created_at_us: int | None
    modified_at_us: int | None
    expires_at_us: int | None = None
    verbatim: bytes | None = None
    rendered: list[tuple[object, bytes]] = field(default_factory=list, init=False, compare=False, repr=False)
    """At most one text of the attributes, with the form it is for: filled when the entity is first shown."""

    @property
    def key(self) -> Key:
        """What is unique within the tenant."""
        return (self.service_path, self.id, self.type)


@lru_cache(maxsize=65536)
def json_text(text: str) -> bytes:
    """A string as JSON."""
    return orjson.dumps(text)


@lru_cache(maxsize=8192)
def member_head(name: str, type_: str) -> bytes:
    """The beginning of an attribute's JSON member, up to its value."""
    return json_text(name) + b':{"type":' + json_text(type_) + b',"value":'


@lru_cache(maxsize=8192)
def time_attribute(name: str, moment_us: int, *, of_entity: bool) -> bytes:
    """A builtin time as a JSON member: an attribute of the entity, or a metadata of an attribute."""
    tail = ',"metadata":{}}' if of_entity else "}"
    return f'"{name}":{{"type":"DateTime","value":"{shown(moment_us)}"{tail}'.encode()


def compact_json(value: object) -> bytes:
    """A value as JSON, in a bytes object of its own size.

    What orjson returns keeps the buffer it was written to, about a kilobyte: too much for a million small values.
    """
    return bytes(memoryview(orjson.dumps(value)))


@lru_cache(maxsize=8192)
def attribute_times(created_at_us: int | None, modified_at_us: int | None, names: tuple[str, ...]) -> bytes:
    """The builtin times among `names` as members of a metadata object."""
    moments = {"dateCreated": created_at_us, "dateModified": modified_at_us}
    return b",".join(
        time_attribute(name, moment, of_entity=False)
        for name, moment in moments.items()
        if name in names and moment is not None
    )
