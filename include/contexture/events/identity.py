"""Whose event it is: the identity that keys, states and comparisons use."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import orjson

IDENTITY_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class ContextIdentity:
    """A context entity, unique in a broker: the same id and type may stand in several service paths."""

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
    """An attribute of an entity; NGSI-LD allows several instances of one name, told apart by `dataset_id`."""

    name: str
    dataset_id: str | None = None


def identity_key(identity: ContextIdentity | StructureIdentity, attribute: AttributeName | None = None) -> bytes:
    """The record key of an identity: a compact JSON array for context, the URN's text for a structure.

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
    """Sixteen bytes that stand for an identity key in comparisons (BLAKE2b: collisions are out of reach)."""
    return blake2b(key, digest_size=IDENTITY_HASH_BYTES).digest()
