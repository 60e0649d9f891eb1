"""Reading: entity lists, single entities, types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from contexture_sandbox.context_broker.answers import bad_request, not_found
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.expressions import Predicate
from contexture_sandbox.context_broker.geometry import geo_predicate
from contexture_sandbox.context_broker.model import StoredEntity
from contexture_sandbox.context_broker.ordering import parse_order
from contexture_sandbox.context_broker.parameters import Parameters, parse_parameters
from contexture_sandbox.context_broker.rendering import Form
from contexture_sandbox.context_broker.selection import Selection, Selector, named_selector, selector_of, terms_of
from contexture_sandbox.context_broker.store import Tenant
from contexture_sandbox.context_broker.syntax import parse_json_object
from contexture_sandbox.context_broker.writes import find
from contexture_sandbox.http_server import JSON_TYPE, Answer, ConnectionDropped, json_answer

COUNT_HEADER = "fiware-total-count"


def list_entities(broker: Broker, call: Call) -> Answer:
    """`GET /v2/entities`."""
    parameters = parse_parameters(call.parameters)
    selection = Selection(
        call.scope,
        (selector_of(call.parameters),),
        terms_of(call.parameters.get("q")),
        terms_of(call.parameters.get("mq"), "mq"),
        parse_order(parameters.list_of("orderBy")),
        _near(call.parameters),
    )
    return _page(broker, selection, parameters, parameters.form)


def query(broker: Broker, call: Call) -> Answer:
    """`POST /v2/op/query`: selectors, attributes and conditions in the body, paging in the URL."""
    parameters = parse_parameters(call.parameters)
    body = parse_json_object(call.body)
    expression = body.get("expression")
    conditions: Mapping[str, object] = expression if isinstance(expression, dict) else {}
    selection = Selection(
        call.scope,
        tuple(_selectors(body)),
        terms_of(_text(conditions, "q")),
        terms_of(_text(conditions, "mq"), "mq"),
        parse_order(parameters.list_of("orderBy")),
        _near(conditions),
    )
    form = Form(parameters.form.representation, _names(body, "attrs"), _names(body, "metadata"))
    return _page(broker, selection, parameters, form)


def _near(given: Mapping[str, object]) -> Predicate | None:
    return geo_predicate(_text(given, "georel"), _text(given, "geometry"), _text(given, "coords"))


def _text(body: Mapping[str, object], name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None


def _names(body: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = body.get(name)
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def _selectors(body: Mapping[str, object]) -> Iterator[Selector]:
    entities = body.get("entities", [{"idPattern": ".*"}])
    if not isinstance(entities, list) or not all(isinstance(one, dict) for one in entities):
        raise bad_request("entities must be a JSON array of objects")
    for one in entities:
        if ("id" in one and "idPattern" in one) or ("type" in one and "typePattern" in one):
            raise bad_request("id and idPattern, or type and typePattern, used at the same time")
        if "id" not in one and "idPattern" not in one:
            raise bad_request("nor /id/ nor /idPattern/ present")
        yield named_selector(one)


def _page(broker: Broker, selection: Selection, parameters: Parameters, form: Form) -> Answer:
    count = "count" in parameters.options
    if broker.faults.database_gone:
        return _list(b"[]", 0 if count else None)
    with broker.store.lock:
        tenant = broker.store.existing(selection.scope.tenant)
        tenant.expire(broker.store.clock.now())
        entities, total = selection.select(tenant, limit=parameters.limit, offset=parameters.offset, count=count)
    answer = _list(form.page(entities), total)
    broker.page_answered()
    return answer


def _list(body: bytes, total: int | None) -> Answer:
    headers = {"content-type": JSON_TYPE}
    return Answer(200, body, headers if total is None else {COUNT_HEADER: str(total), **headers})


def matching(tenant: Tenant, call: Call, entity_id: str) -> list[StoredEntity]:
    """The entities of an id that the scope and the `type` parameter leave."""
    covers = call.scope.predicate()
    types = frozenset(call.parameters["type"].split(",")) if call.parameters.get("type") else None
    return [
        entity
        for entity in tenant.of_id(entity_id)
        if (covers is None or covers(entity.service_path)) and (types is None or entity.type in types)
    ]


def one_entity(broker: Broker, call: Call) -> StoredEntity:
    """The entity a URL names.

    Raises:
        Refusal: 404 for none, 409 for several.
        ConnectionDropped: the database is gone (observed: Orion ended its process).
    """
    if broker.faults.database_gone:
        raise ConnectionDropped
    with broker.store.lock:
        tenant = broker.store.existing(call.scope.tenant)
        tenant.expire(broker.store.clock.now())
        return find(matching(tenant, call, call.segments[2]))


def get_entity(broker: Broker, call: Call) -> Answer:
    """`GET /v2/entities/{id}`, also its `/attrs`."""
    form = parse_parameters(call.parameters).form
    entity = one_entity(broker, call)
    body = form.renderer()(entity)
    if len(call.segments) > 3:
        head = form.renderer()(StoredEntity("", entity.id, entity.type, {}, None, None))
        body = b"{" + body[len(head) - 1 :].removeprefix(b",")
    return Answer(200, body, {"content-type": JSON_TYPE})


def get_attribute(broker: Broker, call: Call) -> Answer:
    """`GET /v2/entities/{id}/attrs/{name}` and its `/value`."""
    form = parse_parameters(call.parameters).form
    attribute = one_entity(broker, call).attributes.get(call.segments[4])
    if attribute is None:
        raise not_found("attribute")
    value_only = call.segments[-1] == "value" and len(call.segments) > 5
    body = attribute.value if value_only else form.attribute(attribute)
    return Answer(200, body, {"content-type": JSON_TYPE})


def list_types(broker: Broker, call: Call) -> Answer:
    """`GET /v2/types`."""
    parameters = parse_parameters(call.parameters)
    count = "count" in parameters.options
    if broker.faults.database_gone:
        return _list(b"[]", 0 if count else None)
    found = _types(broker, call, attribute_detail="noAttrDetail" not in parameters.options)
    page = found[parameters.offset : parameters.offset + parameters.limit]
    shown: list[object] = [one["type"] for one in page] if "values" in parameters.options else list(page)
    return json_answer(shown, headers={COUNT_HEADER: str(len(found))} if count else None)


def get_type(broker: Broker, call: Call) -> Answer:
    """`GET /v2/types/{type}`."""
    broker.refuse_without_database("collection: entities - aggregate")
    found = [one for one in _types(broker, call, attribute_detail=True) if one["type"] == call.segments[2]]
    if not found:
        raise not_found("type")
    return json_answer({name: found[0][name] for name in ("attrs", "count")})


def _types(broker: Broker, call: Call, *, attribute_detail: bool) -> list[dict[str, object]]:
    covers = call.scope.predicate()
    with broker.store.lock:
        tenant = broker.store.existing(call.scope.tenant)
        entities = [one for one in tenant.entities.values() if covers is None or covers(one.service_path)]
    return describe_types(entities, attribute_detail=attribute_detail)


def describe_types(entities: Iterable[StoredEntity], *, attribute_detail: bool = True) -> list[dict[str, object]]:
    """Types in byte order, each with its attributes, their types, and the number of entities."""
    counts: dict[str, int] = {}
    found: dict[str, dict[str, set[str]]] = {}
    for entity in entities:
        counts[entity.type] = counts.get(entity.type, 0) + 1
        attributes = found.setdefault(entity.type, {})
        for name, attribute in entity.attributes.items():
            attributes.setdefault(name, set()).add(attribute.type)
    return [
        {
            "type": name,
            "attrs": {
                attribute: {"types": sorted(found[name][attribute]) if attribute_detail else []}
                for attribute in sorted(found[name])
            },
            "count": counts[name],
        }
        for name in sorted(counts)
    ]
