"""The event, an upsert or a delete of one identity; the identities of entities, attributes and structures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Literal

import orjson

from contexture.events.canonical_json import canonical_json, content_hash, parse_json

__all__ = [
    "AttributeName",
    "ContextIdentity",
    "Event",
    "Operation",
    "StructureIdentity",
    "canonical_json",
    "content_hash",
    "identity_hash",
    "identity_key",
    "parse_json",
]

IDENTITY_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class ContextIdentity:
    """A context entity, unique in a broker: the same id and type may be in several service paths."""

    service: str
    service_path: str
    id: str
    type: str


@dataclass(frozen=True, slots=True)
class StructureIdentity:
    """A maintainable artefact; the URN includes the version."""

    urn: str


@dataclass(frozen=True, slots=True)
class AttributeName:
    """An attribute of an entity; NGSI-LD allows several instances of one name, distinguished by `dataset_id`."""

    name: str
    dataset_id: str | None = None


def identity_key(identity: ContextIdentity | StructureIdentity, attribute: AttributeName | None = None) -> bytes:
    """Returns the record key of an identity: a compact JSON array for context, the URN's text for a structure.

    >>> identity_key(ContextIdentity("vehicles", "/4wheels", "car1", "car"))
    b'["vehicles","/4wheels","car1","car"]'
    """
    if isinstance(identity, StructureIdentity):
        return identity.urn.encode()
    members = [identity.service, identity.service_path, identity.id, identity.type]
    if attribute is not None:
        members.append(attribute.name)
        if attribute.dataset_id is not None:
            members.append(attribute.dataset_id)
    return orjson.dumps(members)


def identity_hash(key: bytes) -> bytes:
    """Sixteen bytes that represent an identity key in comparisons (BLAKE2b: collisions are out of reach)."""
    return blake2b(key, digest_size=IDENTITY_HASH_BYTES).digest()


Operation = Literal["upsert", "delete"]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of an identity.

    Attributes:
        operation: `upsert` carries the whole body, `delete` none.
        identity: of the entity or structure.
        attribute: set where the event is about one attribute only.
        body: the source's own bytes, untouched; None for a delete.
        modified_at: the source's time of the change, UTC, where it gives one.
        received_at: when the page or notification with it arrived, UTC; the clock of batches.
        source_transaction: the registry's transaction, where there is one.
        content_hash: SHA-256 of the canonical body; empty for a delete.
    """

    operation: Operation
    identity: ContextIdentity | StructureIdentity
    attribute: AttributeName | None
    body: bytes | None
    modified_at: datetime | None
    received_at: datetime
    source_transaction: int | None = None
    content_hash: bytes = b""
