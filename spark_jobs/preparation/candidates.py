"""The events of an entity that no rule has refused."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from contexture.events import AttributeName, content_hash, identity_hash, identity_key
from contexture.ngsi.entity import ParsedEntity
from spark_jobs.preparation.landed_rows import LandedRow


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One event that no rule has refused, before it is known whether the target has it already.

    `part` is its place among the events of its entity; `warnings` are the rules its entity breaks without harm.
    """

    row: LandedRow
    part: int
    parsed: ParsedEntity
    attribute: AttributeName | None
    key: bytes
    identity_hash: bytes
    entity_hash: bytes
    content_hash: bytes
    warnings: str | None


def whole(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Candidate:
    """The entity as one event."""
    key = identity_key(parsed.identity)
    hashed = identity_hash(key)
    return Candidate(row, 0, parsed, None, key, hashed, hashed, content_hash(parsed.entity), warnings)


def parts(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Iterator[Candidate]:
    """Each attribute of the entity as an event."""
    entity_hash = identity_hash(identity_key(parsed.identity))
    for part, (name, value) in enumerate(parsed.attributes.items()):
        attribute = AttributeName(name)
        key = identity_key(parsed.identity, attribute)
        content = content_hash({name: value})
        yield Candidate(row, part, parsed, attribute, key, identity_hash(key), entity_hash, content, warnings)
