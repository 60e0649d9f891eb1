"""Changing what is stored, and saying what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from contexture_sandbox.context_broker.answers import Refusal, not_found
from contexture_sandbox.context_broker.model import Key, StoredAttribute, StoredEntity
from contexture_sandbox.context_broker.store import Tenant
from contexture_sandbox.context_broker.syntax import check_identifier, members, parse_attribute
from contexture_sandbox.context_broker.times import parse_time

EXPIRY = "dateExpires"


@dataclass(frozen=True, slots=True)
class Change:
    """What one write did to one entity.

    Attributes:
        kinds: Orion's alteration types it counts as.
        names: attributes the write touched, in its order.
    """

    kinds: frozenset[str]
    entity: StoredEntity
    names: tuple[str, ...]


CREATED = frozenset({"entityCreate"})
UPDATED = frozenset({"entityUpdate"})
CHANGED = frozenset({"entityUpdate", "entityChange"})
DELETED = frozenset({"entityDelete"})


def create(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, *, key_values: bool = False) -> Change:
    """Store a new entity.

    Raises:
        Refusal: 422 when it exists, 400 when it is not acceptable.
    """
    key = key_of(path, given)
    attributes, expires = _parse(members(given), now_us, {}, key_values=key_values)
    if key in tenant.entities:
        raise Refusal(422, "Unprocessable", "Already Exists")
    entity = StoredEntity(*key, attributes, now_us, now_us, expires)
    tenant.put(entity)
    return Change(CREATED, entity, tuple(attributes))


def key_of(path: str, given: Mapping[str, object]) -> Key:
    """The identity of a JSON entity; its type is `Thing` when it has none."""
    entity_id = check_identifier(given.get("id", ""), "entity id")
    return (path, entity_id, check_identifier(given.get("type", "Thing"), "entity type"))


def find(entities: Iterable[StoredEntity]) -> StoredEntity:
    """The only one of them.

    Raises:
        Refusal: 404 for none, 409 for several.
    """
    found = list(entities)
    if not found:
        raise not_found()
    if len(found) > 1:
        raise Refusal(409, "TooManyResults", "More than one matching entity. Please refine your query")
    return found[0]


def merge(
    tenant: Tenant,
    entity: StoredEntity,
    given: Mapping[str, object],
    now_us: int,
    *,
    strict: bool = False,
    only_existing: bool = False,
    key_values: bool = False,
    forced: bool = False,
) -> Change:
    """Append or update attributes. A write that says what is stored already leaves every time as it was.

    Args:
        strict: refuse attributes that exist.
        only_existing: refuse attributes that do not exist.
        forced: what is the same counts as changed too.
    """
    attributes, expires = _parse(given, now_us, entity.attributes, key_values=key_values)
    existing = [name for name in attributes if name in entity.attributes]
    if strict and existing:
        raise Refusal(422, "Unprocessable", f"one or more of the attributes already exist: [ {', '.join(existing)} ]")
    if only_existing and len(existing) < len(attributes):
        raise not_found("attribute")
    merged = {name: _newer(entity.attributes.get(name), one, forced=forced) for name, one in attributes.items()}
    changed = (
        forced or expires is not None or any(one is not entity.attributes.get(name) for name, one in merged.items())
    )
    if changed:
        entity = replace(
            entity,
            attributes={**entity.attributes, **merged},
            modified_at_us=now_us,
            expires_at_us=entity.expires_at_us if expires is None else expires,
        )
        tenant.put(entity)
    return Change(CHANGED if changed else UPDATED, entity, tuple(attributes))


def replace_attributes(
    tenant: Tenant, entity: StoredEntity, given: Mapping[str, object], now_us: int, *, key_values: bool = False
) -> Change:
    """Give an entity these attributes and no others; its modification time moves, whatever they are."""
    attributes, expires = _parse(given, now_us, {}, key_values=key_values)
    entity = replace(entity, attributes=attributes, modified_at_us=now_us, expires_at_us=expires)
    tenant.put(entity)
    return Change(CHANGED, entity, tuple(attributes))


def remove_attributes(tenant: Tenant, entity: StoredEntity, names: Iterable[str], now_us: int) -> Change:
    """Take attributes away.

    Raises:
        Refusal: 404, it lacks one of them.
    """
    gone = tuple(names)
    if any(name not in entity.attributes for name in gone):
        raise not_found("attribute")
    left = {name: attribute for name, attribute in entity.attributes.items() if name not in gone}
    entity = replace(entity, attributes=left, modified_at_us=now_us)
    tenant.put(entity)
    return Change(CHANGED, entity, gone)


def delete(tenant: Tenant, entity: StoredEntity) -> Change:
    """Deletes an entity; subscribers get its last state."""
    tenant.remove(entity.key)
    return Change(DELETED, entity, tuple(entity.attributes))


def _parse(
    given: Mapping[str, object], now_us: int, previous: Mapping[str, StoredAttribute], *, key_values: bool
) -> tuple[dict[str, StoredAttribute], int | None]:
    """Attributes, and the time the entity is to vanish at when that is among them."""
    parsed = {
        name: parse_attribute(name, value, now_us, previous=previous.get(name), key_values=key_values)
        for name, value in given.items()
    }
    expiry = parsed.pop(EXPIRY, None)
    return parsed, None if expiry is None else parse_time(str(expiry.decoded()))


def _newer(old: StoredAttribute | None, new: StoredAttribute, *, forced: bool) -> StoredAttribute:
    if old is None:
        return new
    return old if old.same_content(new) and not forced else replace(new, created_at_us=old.created_at_us)
