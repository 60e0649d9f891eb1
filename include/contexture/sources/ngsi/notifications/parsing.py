"""From an HTTP request to events.

NGSIv2 marks a deletion by the builtin `alterationType`, which the subscription has to list (`notification.attrs`);
without it, a deletion looks exactly like an update. NGSI-LD marks it by the entity's own `deletedAt`.

NGSIv1      {"subscriptionId", "originator", "contextResponses": [{"contextElement": {...}, "statusCode": {...}}]}
NGSIv2      {"subscriptionId", "data": [entity, ...]}; simplifiedNormalized: the entity alone
NGSI-LD     {"id", "type": "Notification", "subscriptionId", "notifiedAt", "data": [entity, ...]}

Of each attribute and metadata name, type and value stay, absent where they were absent; lists become objects in the
same order. What NGSIv2 has no place for (`isPattern`) is in the context element alone, which is stored as received.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import orjson

from contexture.errors import RejectedError
from contexture.events import ContextIdentity, Event, Operation, content_hash, parse_json
from contexture.sources.ngsi.entity import SERVICE_PATH as LINKED_DATA_PATH
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity, type_name
from contexture.sources.ngsi.notifications.notification import (
    DEFAULT_SERVICE,
    DEFAULT_SERVICE_PATH,
    TOO_LARGE,
    Form,
    Notification,
    NotifiedEntity,
    read_headers,
    refused,
)

ALTERATION = "alterationType"
DELETED_AT = "deletedAt"

_ALTERATIONS = frozenset({"entityCreate", "entityUpdate", "entityChange", "entityDelete"})


def pop_operation(entity: dict[str, object]) -> Operation:
    """Returns what happened to an NGSIv2 entity, and removes the builtin that shows it, but no user's attribute."""
    builtin = entity.get(ALTERATION)
    value = builtin.get("value") if isinstance(builtin, dict) else None
    if not isinstance(value, str) or value not in _ALTERATIONS:
        return "upsert"
    del entity[ALTERATION]
    return "delete" if value == "entityDelete" else "upsert"


def linked_data_operation(entity: dict[str, object]) -> Operation:
    """Returns what happened to an NGSI-LD entity."""
    return "delete" if isinstance(entity.get(DELETED_AT), str) else "upsert"


Entity = dict[str, object]


def form_of(body: Mapping[str, object], *, legacy: bool | None) -> Form:
    """Returns the form of a body.

    Raises:
        NotificationError: it is none of them, or contradicts the header.
    """
    form = _shown_form(body)
    if legacy is not None and form != "ngsi-ld" and (form == "ngsiv1") != legacy:
        raise refused(
            f"Ngsiv2-AttrsFormat says {'legacy' if legacy else 'normalized'}, the body is {form}",
            "let header and body say the same",
        )
    return form


def entities_of(body: Mapping[str, object], form: Form) -> list[Entity]:
    """Returns the entities of a body, in order, as they were sent.

    Raises:
        NotificationError: there are none, or one is not an object.
    """
    if form == "ngsiv1":
        return [_context_element(item) for item in _listed(body, "contextResponses")]
    if "data" not in body:
        return [dict(body)]
    return [_object(item, "an entity in data") for item in _listed(body, "data")]


def text_of(body: Mapping[str, object], name: str) -> str | None:
    """Returns a member that is a text; None when it is anything else."""
    value = body.get(name)
    return value if isinstance(value, str) else None


def _shown_form(body: Mapping[str, object]) -> Form:
    if "contextResponses" in body:
        return "ngsiv1"
    if body.get("type") == "Notification" and "data" in body:
        return "ngsi-ld"
    if "data" in body or ("id" in body and "subscriptionId" not in body):
        return "ngsiv2"
    raise refused(
        "the body is not a notification: it has neither data nor contextResponses",
        "send what a subscription of NGSIv1, NGSIv2 (attrsFormat normalized) or NGSI-LD sends",
    )


def _context_element(item: object) -> Entity:
    element = _object(item, "an item of contextResponses").get("contextElement")
    return _object(element, "a contextElement")


def _listed(body: Mapping[str, object], name: str) -> list[object]:
    items = body[name]
    if not isinstance(items, list) or not items:
        raise refused(f"{name} is not a list of entities", f"send at least one entity in {name}")
    return items


def _object(value: object, what: str) -> Entity:
    if not isinstance(value, dict):
        raise refused(f"{what} is a JSON {type(value).__name__}, not an object", "send each entity as an object")
    return value


MAXIMUM_NESTING = 100
"""Deeper than any rule lets an entity be, and shallower than what the JSON writers take."""


class _DuplicateMemberError(ValueError):
    """An object names a member twice, and readers differ on which one holds."""


def read_json(body: bytes, maximum_bytes: int) -> dict[str, object]:
    """Parses the JSON object of a body; numbers that a float would change are `orjson.Fragment`s.

    Raises:
        NotificationError: too large, not UTF-8, no JSON object, nested too deep, or a member is there twice.
    """
    if len(body) > maximum_bytes:
        raise refused(
            f"the body has {len(body)} bytes, more than {maximum_bytes}",
            "notify fewer entities in one request",
            TOO_LARGE,
        )
    if not body.strip():
        raise refused("the body is empty", "send the notification as JSON")
    value = _parsed(body)
    if not isinstance(value, dict):
        raise refused(f"the body is a JSON {type(value).__name__}, not an object", "send a notification")
    # Each level opens a bracket, so as many levels need as many brackets.
    if body.count(b"{") + body.count(b"[") > MAXIMUM_NESTING and _is_deeper(value, MAXIMUM_NESTING):
        raise _too_deep()
    return value


def _parsed(body: bytes) -> object:
    try:
        value = parse_json(body)
        # What is written again byte for byte has lost no member.
        if orjson.dumps(value) != body:
            json.loads(body, object_pairs_hook=_check_unique)
    except UnicodeDecodeError:
        raise _not_utf_8() from None
    except _DuplicateMemberError as error:
        raise refused(f"the member {str(error)[:60]!r} is in one object twice", "name each member once") from None
    except (TypeError, RecursionError):
        # orjson reads deeper than it writes, and says so by a TypeError.
        raise _too_deep() from None
    except ValueError as error:
        raise _unreadable(body, str(error)) from None
    return value


def _check_unique(members: list[tuple[str, object]]) -> None:
    names: set[str] = set()
    for name, _ in members:
        if name in names:
            raise _DuplicateMemberError(name)
        names.add(name)


def _unreadable(body: bytes, reason: str) -> RejectedError:
    if "depth limit" in reason or "ecursion" in reason:
        return _too_deep()
    try:
        body.decode()
    except UnicodeDecodeError:
        return _not_utf_8()
    return refused(f"the body is not JSON ({reason[:120]})", "send the notification as JSON")


def _not_utf_8() -> RejectedError:
    return refused("the body is not UTF-8", "send the notification in UTF-8")


def _too_deep() -> RejectedError:
    return refused(f"the body is nested more than {MAXIMUM_NESTING} levels deep", "flatten the attribute's value")


def _is_deeper(value: object, limit: int) -> bool:
    """Goes level by level, because a body may be nested deeper than Python's own stack allows."""
    level: list[object] = [value]
    for _ in range(limit + 1):
        level = [inner for item in level for inner in _inside(item) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _inside(item: object) -> Iterable[object]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


_NEXT_STEP = "send contextElement as NGSIv1 has it: attributes are a list of {name, type, value, metadatas}"


def normalized(element: Mapping[str, object]) -> dict[str, object]:
    """Returns the entity of a `contextElement` in NGSIv2's normalized form.

    Raises:
        NotificationError: attributes or metadatas are no lists of named objects, or one is there twice.
    """
    entity: dict[str, object] = {name: element[name] for name in ("id", "type") if name in element}
    for attribute in _list_legacy_entities(element.get("attributes"), "attributes"):
        name = _name(attribute, "an attribute")
        if name in entity:
            raise refused(f"the attribute {name[:60]!r} is there twice, or is called like a member", _NEXT_STEP)
        entity[name] = _member(attribute, _metadata(attribute))
    return entity


def _metadata(attribute: Mapping[str, object]) -> dict[str, object]:
    if "metadatas" not in attribute:
        return {}
    if attribute["metadatas"] is None:
        return {"metadata": None}
    metadata: dict[str, object] = {}
    for item in _list_legacy_entities(attribute["metadatas"], "metadatas"):
        name = _name(item, "a metadata")
        if name in metadata:
            raise refused(f"the metadata {name[:60]!r} is there twice", _NEXT_STEP)
        metadata[name] = _member(item, {})
    return {"metadata": metadata}


def _member(item: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    return {**{name: item[name] for name in ("type", "value") if name in item}, **more}


def _list_legacy_entities(value: object, what: str) -> list[dict[str, object]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise refused(f"{what} are not a list of objects", _NEXT_STEP)
    return value


def _name(item: Mapping[str, object], what: str) -> str:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise refused(f"{what} has no name", _NEXT_STEP)
    return name


def parse_notified(
    body: bytes, form: Form, service: str, service_path: str, *, attribute_times: bool = False
) -> ParsedEntity:
    """Parses a notified body, whatever form it was sent in; arguments as `parse_entity`.

    Which metadata a subscription requests is not known. So an NGSIv2 entity that does not show it itself, and has a
    member called like a builtin, is `shadowed`.

    Raises:
        EntityError: the body is not an entity of that form.
    """
    if form == "ngsi-ld":
        return parse_entity(
            body, service=service, service_path_hint=service_path, form="ngsi-ld", attribute_times=attribute_times
        )
    if form == "ngsiv2":
        return parse_entity(body, service=service, service_path_hint=service_path, attribute_times=None)
    return parse_entity(_normalized(body), service=service, service_path_hint=service_path, attribute_times=None)


def _normalized(body: bytes) -> bytes:
    try:
        element = parse_json(body)
        if isinstance(element, dict):
            return orjson.dumps(normalized(element))
    except (ValueError, TypeError, RejectedError) as error:
        message = f"the body is not a context element ({error})"[:200]
        raise EntityError(message, next_step="correct the entity in its source", rule="body") from error
    raise EntityError("the body is not a context element", next_step="correct the entity in its source", rule="body")


MAXIMUM_BYTES = 8 << 20


def parse_notification(
    headers: Mapping[str, str],
    body: bytes,
    *,
    default_service: str = DEFAULT_SERVICE,
    default_service_path: str = DEFAULT_SERVICE_PATH,
    maximum_bytes: int = MAXIMUM_BYTES,
    received_at: datetime | None = None,
) -> list[Event]:
    """Returns the events of a broker's notification, one for each entity, in order.

    Understood are NGSIv1 (`legacy`), NGSIv2 (`normalized`, `simplifiedNormalized`) and NGSI-LD. Bodies are in the form
    they were sent in, except NGSIv1, which is returned in NGSIv2's normalized form. An entity whose builtin
    `alterationType` is `entityDelete`, or an NGSI-LD entity with `deletedAt`, is a delete.

    Args:
        headers: of the request, names in any case.
        body: of the request.
        default_service, default_service_path: where the headers have none.
        maximum_bytes: of the body.
        received_at: when it arrived, UTC; now when None.

    Raises:
        NotificationError: the request cannot be accepted; its `status` is that of the HTTP response.
    """
    notification = read_notification(
        headers,
        body,
        default_service=default_service,
        default_service_path=default_service_path,
        maximum_bytes=maximum_bytes,
    )
    moment = received_at or datetime.now(UTC)
    return [_event(notification, entity, moment) for entity in notification.entities]


def read_notification(
    headers: Mapping[str, str],
    body: bytes,
    *,
    default_service: str = DEFAULT_SERVICE,
    default_service_path: str = DEFAULT_SERVICE_PATH,
    maximum_bytes: int = MAXIMUM_BYTES,
) -> Notification:
    """Reads a request, whose entities stay as they are; arguments and errors as `parse_notification`."""
    given = read_headers(headers, default_service=default_service, default_service_path=default_service_path)
    content = read_json(body, maximum_bytes)
    form = form_of(content, legacy=given.legacy)
    found = entities_of(content, form)
    context = content.get("@context", given.context) if form == "ngsi-ld" else None
    return Notification(
        form=form,
        service=given.service,
        correlator=given.correlator,
        subscription=text_of(content, "subscriptionId"),
        entities=tuple(
            _entity(entity, form, path, context)
            for entity, path in zip(found, given.paths_for(len(found)), strict=True)
        ),
    )


def _entity(entity: Entity, form: Form, service_path: str, context: object) -> NotifiedEntity:
    if form == "ngsi-ld":
        operation = linked_data_operation(entity)
        entity = entity if context is None or "@context" in entity else {**entity, "@context": context}
    elif form == "ngsiv1":
        normalized(entity)  # refuses now what cannot be written in the one form that all rules know
        operation = "upsert"
    else:
        operation = pop_operation(entity)
    return NotifiedEntity(
        operation=operation,
        service_path=LINKED_DATA_PATH if form == "ngsi-ld" else service_path,
        id=text_of(entity, "id") or "",
        type=(type_name(entity.get("type")) if form == "ngsi-ld" else text_of(entity, "type")) or "",
        body=orjson.dumps(entity),
    )


def _event(notification: Notification, entity: NotifiedEntity, received_at: datetime) -> Event:
    if entity.operation == "delete":
        identity = ContextIdentity(notification.service, entity.service_path, entity.id, entity.type)
        return Event("delete", identity, None, None, None, received_at)
    try:
        parsed = parse_notified(entity.body, notification.form, notification.service, entity.service_path)
    except EntityError as error:
        raise refused(error.message, error.next_step) from error
    return Event(
        operation="upsert",
        identity=parsed.identity,
        attribute=None,
        body=orjson.dumps(parsed.entity) if notification.form == "ngsiv1" else entity.body,
        modified_at=parsed.modified_at,
        received_at=received_at,
        content_hash=content_hash(parsed.entity),
    )
