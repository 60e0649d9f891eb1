"""Notified entities in the one model that rules, names and bodies work on."""

from __future__ import annotations

import orjson

from contexture.errors import RejectedError
from contexture.events import parse_json
from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.ngsi.notifications.legacy import normalized
from contexture.ngsi.notifications.notification import Form


def parse_notified(
    body: bytes, form: Form, service: str, service_path: str, *, attribute_times: bool = False
) -> ParsedEntity:
    """The entity of a notified body, whatever form it was sent in; arguments as `parse_entity`.

    Which metadata a subscription asks for is not known. An NGSIv2 entity that does not show it itself, and has a member
    called like a builtin, is `shadowed` therefore.

    Raises:
        EntityError: the body isn't an entity of that form.
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
        message = f"the body isn't a context element ({error})"[:200]
        raise EntityError(message, next_step="correct the entity in its source", rule="body") from error
    raise EntityError("the body isn't a context element", next_step="correct the entity in its source", rule="body")
