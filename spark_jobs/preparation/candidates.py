"""The events of an entity that no rule has refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from contexture.events import AttributeName, content_hash, identity_hash, identity_key
from contexture.sources.ngsi.entity import ParsedEntity
from spark_jobs.preparation.landed_rows import LandedRow

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One event that no rule has refused, before it is known whether the target has it already.

    `part` is its place among the events of its entity; `warnings` are the rules its entity breaks without harm;
    `modified_at` is when it was changed itself, in microseconds since 1970, or its entity where that is not known.
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
    modified_at: int | None


def whole(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Candidate:
    """The entity as one event."""
    key = identity_key(parsed.identity)
    hashed = identity_hash(key)
    content = content_hash(parsed.entity)
    return Candidate(row, 0, parsed, None, key, hashed, hashed, content, warnings, row.modified_at)


def parts(row: LandedRow, parsed: ParsedEntity, warnings: str | None) -> Iterator[Candidate]:
    """Each attribute of the entity as an event."""
    entity_hash = identity_hash(identity_key(parsed.identity))
    for part, (name, value) in enumerate(parsed.attributes.items()):
        attribute = parsed.attribute_name(name)
        key = identity_key(parsed.identity, attribute)
        content, hashed = content_hash({name: value}), identity_hash(key)
        modified_at = _own_time(parsed, name, row.modified_at)
        yield Candidate(row, part, parsed, attribute, key, hashed, entity_hash, content, warnings, modified_at)


def _own_time(parsed: ParsedEntity, attribute: str, of_entity: int | None) -> int | None:
    time = (parsed.attribute_times or {}).get(attribute)
    return of_entity if time is None else (time - _EPOCH) // _MICROSECOND
