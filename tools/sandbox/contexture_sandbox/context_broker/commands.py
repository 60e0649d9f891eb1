"""Writing: entities, attributes, batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contexture_sandbox.context_broker import batch, writes
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.model import StoredEntity
from contexture_sandbox.context_broker.parameters import Parameters, parse_parameters
from contexture_sandbox.context_broker.queries import matching
from contexture_sandbox.context_broker.store import Tenant
from contexture_sandbox.context_broker.syntax import members, parse_json_object
from contexture_sandbox.context_broker.writes import Change
from contexture_sandbox.http_server import Answer

NO_CONTENT = Answer(204)
Edit = Callable[[Tenant, StoredEntity, Parameters, int], Change]


def create_entity(broker: Broker, call: Call) -> Answer:
    """`POST /v2/entities`, with `options=upsert` also over an existing one."""
    broker.refuse_without_database("collection: entities - insert")
    options = parse_parameters(call.parameters).options
    given = parse_json_object(call.body)
    path, key_values = call.scope.write_path(), "keyValues" in options
    with broker.store.lock:
        tenant = broker.store.tenant(call.scope.tenant)
        now = broker.store.clock.now()
        existing = tenant.entities.get(writes.key_of(path, given)) if "upsert" in options else None
        if existing is None:
            change = writes.create(tenant, path, given, now, key_values=key_values)
        else:
            change = writes.merge(tenant, existing, members(given), now, key_values=key_values)
    broker.notify(call, [change])
    where = f"/v2/entities/{change.entity.id}?type={change.entity.type}"
    return Answer(201 if existing is None else 204, b"", {"location": where})


def update_batch(broker: Broker, call: Call) -> Answer:
    """`POST /v2/op/update`."""
    broker.refuse_without_database("collection: entities - update")
    options = parse_parameters(call.parameters).options
    body = parse_json_object(call.body)
    path = call.scope.write_path()
    with broker.store.lock:
        tenant = broker.store.tenant(call.scope.tenant)
        changes = batch.update(broker.store, tenant, path, body, key_values="keyValues" in options)
    broker.notify(call, changes)
    return NO_CONTENT


def delete_entity(broker: Broker, call: Call) -> Answer:
    """`DELETE /v2/entities/{id}`."""
    return _edit(broker, call, lambda tenant, entity, _parameters, _now: writes.delete(tenant, entity))


def append_attributes(broker: Broker, call: Call) -> Answer:
    """`POST /v2/entities/{id}/attrs`; `options=append` refuses those that exist."""
    given = parse_json_object(call.body)
    return _edit(
        broker,
        call,
        lambda tenant, entity, parameters, now: writes.merge(
            tenant,
            entity,
            given,
            now,
            strict="append" in parameters.options,
            key_values=_plain(parameters),
            forced=_forced(parameters),
        ),
    )


def update_attributes(broker: Broker, call: Call) -> Answer:
    """`PATCH /v2/entities/{id}/attrs`."""
    return _update_existing(broker, call, parse_json_object(call.body))


def replace_attributes(broker: Broker, call: Call) -> Answer:
    """`PUT /v2/entities/{id}/attrs`."""
    given = parse_json_object(call.body)
    return _edit(
        broker,
        call,
        lambda tenant, entity, parameters, now: writes.replace_attributes(
            tenant, entity, given, now, key_values=_plain(parameters)
        ),
    )


def update_attribute(broker: Broker, call: Call) -> Answer:
    """`PUT /v2/entities/{id}/attrs/{name}`, and its `/value` with a JSON object or array."""
    name = call.segments[4]
    if call.segments[-1] == "value" and len(call.segments) > 5:
        return _update_existing(broker, call, {name: {"value": _value(call.body)}})
    return _update_existing(broker, call, {name: parse_json_object(call.body)})


def delete_attribute(broker: Broker, call: Call) -> Answer:
    """`DELETE /v2/entities/{id}/attrs/{name}`."""
    name = call.segments[4]
    return _edit(broker, call, lambda tenant, entity, _p, now: writes.remove_attributes(tenant, entity, [name], now))


def _value(body: bytes) -> object:
    return parse_json_object(b'{"value":' + body + b"}")["value"]


def _plain(parameters: Parameters) -> bool:
    return "keyValues" in parameters.options


def _forced(parameters: Parameters) -> bool:
    return "forcedUpdate" in parameters.options


def _update_existing(broker: Broker, call: Call, given: Mapping[str, object]) -> Answer:
    return _edit(
        broker,
        call,
        lambda tenant, entity, parameters, now: writes.merge(
            tenant, entity, given, now, only_existing=True, key_values=_plain(parameters), forced=_forced(parameters)
        ),
    )


def _edit(broker: Broker, call: Call, edit: Edit) -> Answer:
    """Changes the one entity that a URL names, and notifies the subscribers."""
    broker.refuse_without_database("collection: entities - update")
    parameters = parse_parameters(call.parameters)
    with broker.store.lock:
        tenant = broker.store.existing(call.scope.tenant)
        entity = writes.find(matching(tenant, call, call.segments[2]))
        change = edit(tenant, entity, parameters, broker.store.clock.now())
    broker.notify(call, [change])
    return NO_CONTENT
