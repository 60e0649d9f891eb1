"""`POST /v2/op/update`: many entities in one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contexture_sandbox.context_broker import writes
from contexture_sandbox.context_broker.answers import bad_request, not_found
from contexture_sandbox.context_broker.model import StoredEntity
from contexture_sandbox.context_broker.store import Store, Tenant
from contexture_sandbox.context_broker.syntax import members
from contexture_sandbox.context_broker.writes import Change

Action = Callable[[Tenant, str, Mapping[str, object], int, bool], Change]


def update(store: Store, tenant: Tenant, path: str, body: Mapping[str, object], *, key_values: bool) -> list[Change]:
    """Apply an action to every entity of the body. What came before a refused entity stays done, as in the original.

    Raises:
        Refusal: 400 for an unknown action or an unacceptable entity, 404 or 422 as the action has it.
    """
    action = ACTIONS.get(str(body.get("actionType")))
    entities = body.get("entities")
    if action is None:
        raise bad_request("invalid update action type: right ones are append, appendStrict, delete, replace, update")
    if not isinstance(entities, list) or not entities:
        raise bad_request("empty update action")
    changes = []
    for given in entities:
        if not isinstance(given, dict):
            raise bad_request("entity must be a JSON object")
        changes.append(action(tenant, path, given, store.clock.now(), key_values))
    return changes


def _existing(tenant: Tenant, path: str, given: Mapping[str, object]) -> StoredEntity | None:
    key = writes.key_of(path, given)
    if "type" in given:
        return tenant.entities.get(key)
    of_any_type = [entity for entity in tenant.of_id(key[1]) if entity.service_path == path]
    return writes.find(of_any_type) if of_any_type else None


def _append(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, key_values: bool) -> Change:
    entity = _existing(tenant, path, given)
    if entity is None:
        return writes.create(tenant, path, given, now_us, key_values=key_values)
    return writes.merge(tenant, entity, members(given), now_us, key_values=key_values)


def _append_strict(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, key_values: bool) -> Change:
    entity = _existing(tenant, path, given)
    if entity is None:
        return writes.create(tenant, path, given, now_us, key_values=key_values)
    return writes.merge(tenant, entity, members(given), now_us, strict=True, key_values=key_values)


def _update(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, key_values: bool) -> Change:
    entity = _known(tenant, path, given)
    return writes.merge(tenant, entity, members(given), now_us, only_existing=True, key_values=key_values)


def _replace(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, key_values: bool) -> Change:
    entity = _known(tenant, path, given)
    return writes.replace_attributes(tenant, entity, members(given), now_us, key_values=key_values)


def _delete(tenant: Tenant, path: str, given: Mapping[str, object], now_us: int, key_values: bool) -> Change:
    del key_values
    entity = _known(tenant, path, given)
    names = members(given)
    return writes.remove_attributes(tenant, entity, names, now_us) if names else writes.delete(tenant, entity)


def _known(tenant: Tenant, path: str, given: Mapping[str, object]) -> StoredEntity:
    entity = _existing(tenant, path, given)
    if entity is None:
        raise not_found()
    return entity


ACTIONS: dict[str, Action] = {
    "append": _append,
    "appendStrict": _append_strict,
    "update": _update,
    "replace": _replace,
    "delete": _delete,
}
