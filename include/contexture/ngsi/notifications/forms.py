"""Telling the forms of a notification apart, and finding its entities.

NGSIv1      {"subscriptionId", "originator", "contextResponses": [{"contextElement": {...}, "statusCode": {...}}]}
NGSIv2      {"subscriptionId", "data": [entity, ...]}; simplifiedNormalized: the entity alone
NGSI-LD     {"id", "type": "Notification", "subscriptionId", "notifiedAt", "data": [entity, ...]}
"""

from __future__ import annotations

from collections.abc import Mapping

from contexture.ngsi.notifications.errors import refused
from contexture.ngsi.notifications.notification import Form

Entity = dict[str, object]


def form_of(body: Mapping[str, object], *, legacy: bool | None) -> Form:
    """The form of a body; what it shows wins over a header that wasn't sent.

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
    """The entities of a body, in order, as they were sent.

    Raises:
        NotificationError: there are none, or one isn't an object.
    """
    if form == "ngsiv1":
        return [_context_element(item) for item in _listed(body, "contextResponses")]
    if "data" not in body:
        return [dict(body)]
    return [_object(item, "an entity in data") for item in _listed(body, "data")]


def text_of(body: Mapping[str, object], name: str) -> str | None:
    """A member that is a text; None when it is anything else."""
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
        "the body is no notification: it has neither data nor contextResponses",
        "send what a subscription of NGSIv1, NGSIv2 (attrsFormat normalized) or NGSI-LD sends",
    )


def _context_element(item: object) -> Entity:
    element = _object(item, "an item of contextResponses").get("contextElement")
    return _object(element, "a contextElement")


def _listed(body: Mapping[str, object], name: str) -> list[object]:
    items = body[name]
    if not isinstance(items, list) or not items:
        raise refused(f"{name} is no list of entities", f"send at least one entity in {name}")
    return items


def _object(value: object, what: str) -> Entity:
    if not isinstance(value, dict):
        raise refused(f"{what} is a JSON {type(value).__name__}, not an object", "send each entity as an object")
    return value
