"""From an HTTP request to events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from contexture.events import ContextIdentity, Event, content_hash
from contexture.ngsi.entity import EntityError
from contexture.ngsi.linked_data.entity import SERVICE_PATH as LINKED_DATA_PATH
from contexture.ngsi.linked_data.entity import type_name
from contexture.ngsi.notifications.deletions import linked_data_operation, take_operation
from contexture.ngsi.notifications.errors import refused
from contexture.ngsi.notifications.forms import Entity, entities_of, form_of, text_of
from contexture.ngsi.notifications.headers import DEFAULT_SERVICE, DEFAULT_SERVICE_PATH, read_headers
from contexture.ngsi.notifications.json_body import read_json
from contexture.ngsi.notifications.legacy import normalized
from contexture.ngsi.notifications.notification import Form, Notification, NotifiedEntity
from contexture.ngsi.notifications.parsed import parse_notified

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
    """The events of a broker's notification, one for each entity, in order.

    Understood are NGSIv1 (`legacy`), NGSIv2 (`normalized`, `simplifiedNormalized`) and NGSI-LD. Bodies are in the form
    they were sent in, but for NGSIv1, which is told in NGSIv2's normalized form. An entity whose builtin
    `alterationType` says `entityDelete`, or an NGSI-LD entity with `deletedAt`, is a delete.

    Args:
        headers: of the request, names in any case.
        body: of the request.
        default_service, default_service_path: where the headers don't say.
        maximum_bytes: of the body.
        received_at: when it arrived, UTC; now when None.

    Raises:
        NotificationError: the request can't be taken; its `status` is the HTTP answer.
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
    """What a request tells, before anything is made of it; arguments and errors as `parse_notification`."""
    told = read_headers(headers, default_service=default_service, default_service_path=default_service_path)
    content = read_json(body, maximum_bytes)
    form = form_of(content, legacy=told.legacy)
    found = entities_of(content, form)
    context = content.get("@context", told.context) if form == "ngsi-ld" else None
    return Notification(
        form=form,
        service=told.service,
        correlator=told.correlator,
        subscription=text_of(content, "subscriptionId"),
        entities=tuple(
            _entity(entity, form, path, context) for entity, path in zip(found, told.paths_for(len(found)), strict=True)
        ),
    )


def _entity(entity: Entity, form: Form, service_path: str, context: object) -> NotifiedEntity:
    if form == "ngsi-ld":
        operation = linked_data_operation(entity)
        entity = entity if context is None or "@context" in entity else {**entity, "@context": context}
    elif form == "ngsiv1":
        normalized(entity)  # what can't be told in the one form that all rules know is refused now
        operation = "upsert"
    else:
        operation = take_operation(entity)
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
