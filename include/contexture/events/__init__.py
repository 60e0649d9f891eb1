"""One thing to tell a consumer, and whose it is."""

from __future__ import annotations

from contexture.events.canonical_json import canonical_json, content_hash, parse_json
from contexture.events.event import (
    AttributeName,
    ContextIdentity,
    Event,
    Operation,
    StructureIdentity,
    identity_hash,
    identity_key,
)

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
