"""The load hook: content that came into the broker by other roads than its API, so nothing about it is checked.

Databases of brokers hold what older versions, scripts and restores put there: numbers as texts, dates that are none,
objects that are no normalized entities, entities without times. The hook stores all of that, with numbers as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from sys import intern

import orjson

from contexture.events import parse_json
from contexture_sandbox.context_broker.model import DATE_TYPES, StoredAttribute, StoredEntity, compact_json
from contexture_sandbox.context_broker.store import Store, Tenant
from contexture_sandbox.context_broker.syntax import default_type, members
from contexture_sandbox.context_broker.times import parse_time, shown, stored

NOW = "now"


@dataclass(frozen=True, slots=True)
class SeedEntity:
    """One entity for the broker.

    Attributes:
        service: tenant.
        service_path: one path, absolute.
        entity: NGSIv2 normalized form; anything is taken.
        created_at, modified_at: the broker's own times; "now", a time, or None for data that never had them.
        delete: take the entity away instead.
    """

    service: str
    service_path: str
    entity: Mapping[str, object]
    created_at: datetime | str | None = NOW
    modified_at: datetime | str | None = NOW
    delete: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load did."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0


def load(store: Store, entities: Iterable[SeedEntity]) -> Loaded:
    """Store entities; one that is already there with the same content keeps its times."""
    counts = dict.fromkeys(Loaded.__dataclass_fields__, 0)
    for seed in entities:
        with store.lock:
            counts[_load_one(store, store.tenant(seed.service.lower()), seed)] += 1
    return Loaded(**counts)


def read_lines(body: bytes) -> Iterator[SeedEntity]:
    """The entities of an NDJSON text: `{service, service_path, entity, created_at?, modified_at?, delete?}` a line.

    Raises:
        ValueError: a line is no JSON object with these members.
    """
    for number, line in enumerate(body.splitlines(), 1):
        if not line.strip():
            continue
        given = parse_json(line)
        if not isinstance(given, dict) or not isinstance(given.get("entity"), dict):
            raise ValueError(f"line {number}: an object with service, service_path and entity is expected")  # noqa: TRY004
        yield SeedEntity(**given)


def _load_one(store: Store, tenant: Tenant, seed: SeedEntity) -> str:
    now = store.clock.now()
    modified = now if seed.modified_at == NOW else stored(seed.modified_at)
    created = now if seed.created_at == NOW else stored(seed.created_at)
    if seed.created_at == NOW and modified is not None:
        created = min(now, modified)
    entity = _entity(seed, created, modified)
    old = tenant.entities.get(entity.key)
    if seed.delete:
        return "deleted" if tenant.remove(entity.key) else "unchanged"
    if old is None:
        tenant.put(entity)
        return "created"
    if _same(old, entity):
        return "unchanged"
    tenant.put(replace(entity, created_at_us=old.created_at_us, attributes=_kept(old, entity)))
    return "changed"


def _entity(seed: SeedEntity, created: int | None, modified: int | None) -> StoredEntity:
    given = seed.entity
    key = (intern(seed.service_path), str(given.get("id", "")), intern(str(given.get("type", ""))))
    attributes = members(given)
    if not _is_normalized(given, attributes):
        return StoredEntity(*key, {}, created, modified, verbatim=compact_json(dict(given)))
    return StoredEntity(
        *key,
        {intern(name): _attribute(value, created, modified) for name, value in attributes.items()},
        created,
        modified,
    )


def _is_normalized(given: Mapping[str, object], attributes: Mapping[str, object]) -> bool:
    if not isinstance(given.get("id"), str) or not isinstance(given.get("type"), str):
        return False
    return all(isinstance(value, dict) and "value" in value for value in attributes.values())


def _attribute(given: object, created: int | None, modified: int | None) -> StoredAttribute:
    assert isinstance(given, dict)
    value = given["value"]
    type_ = intern(str(given.get("type", "Number" if isinstance(value, orjson.Fragment) else default_type(value))))
    moment = parse_time(value) if type_ in DATE_TYPES and isinstance(value, str) else None
    text = compact_json(value) if moment is None else f'"{shown(moment)}"'.encode()
    metadata = given.get("metadata") or {}
    kept = tuple((name, compact_json(metadata[name])) for name in sorted(metadata)) if metadata else ()
    return StoredAttribute(type_, text, kept, created, modified)


def _same(old: StoredEntity, new: StoredEntity) -> bool:
    if old.verbatim != new.verbatim or old.attributes.keys() != new.attributes.keys():
        return False
    return all(old.attributes[name].same_content(one) for name, one in new.attributes.items())


def _kept(old: StoredEntity, new: StoredEntity) -> dict[str, StoredAttribute]:
    """The new attributes, those that did not change with their times."""
    return {
        name: known if (known := old.attributes.get(name)) is not None and known.same_content(one) else one
        for name, one in new.attributes.items()
    }
