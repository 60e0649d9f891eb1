"""An entity as the broker sent it, taken apart: whose it is, when it changed, and what its users put in it.

The builtins that a pull asks for (`dateCreated`, `dateModified`, `dateExpires`, `servicePath`) are told apart from the
user's attributes, so that neither a body nor a content hash holds them. A user attribute of the same name hides the
builtin in the broker's answer; it stays an attribute, and the entity says so in `shadowed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity, parse_json

TIME_BUILTINS = ("dateCreated", "dateModified", "dateExpires")
BUILTINS = frozenset((*TIME_BUILTINS, "servicePath"))

EntityForm = Literal["ngsiv2", "ngsi-ld"]

_ROOT = "/"
_IDENTIFIERS = ("id", "type")


class EntityError(RejectedError):
    """What the source sent isn't one JSON object; `context["rule"]` names the rule it breaks."""


class ParsedEntity(msgspec.Struct, frozen=True):
    """One entity, taken apart.

    Attributes:
        identity: whose it is; an id or type that is absent or not a string stands as an empty string.
        entity: id, type and the user's attributes in the order they were sent, number literals as they were sent.
        attributes: name to attribute, in the same order and without id and type.
        created_at: the broker's time of creation, UTC, where it was sent.
        modified_at: the broker's time of the last change, UTC, where it was sent.
        shadowed: the builtins that a user attribute of the same name hides.
        body: the bytes all this was read from.
        linked_data: the NGSI-LD entity as received, without the broker's own members; None where it was NGSIv2.
        datasets: of attributes that are one of several instances (datasetId): their name in `attributes` to theirs.
        attribute_times: name to the broker's time of the attribute's own last change, where that was asked for.
        expires_at: when the broker will delete it, UTC, where it said so.
    """

    identity: ContextIdentity
    entity: dict[str, object]
    attributes: dict[str, object]
    created_at: datetime | None
    modified_at: datetime | None
    shadowed: tuple[str, ...]
    body: bytes
    linked_data: dict[str, object] | None = None
    datasets: Mapping[str, AttributeName] | None = None
    attribute_times: Mapping[str, datetime] | None = None
    expires_at: datetime | None = None

    def attribute_name(self, key: str) -> AttributeName:
        """What the attribute that stands under `key` is called in its source."""
        return (self.datasets or {}).get(key) or AttributeName(key)


def parse_entity(
    body: bytes,
    *,
    service: str,
    service_path_hint: str | None = None,
    form: EntityForm = "ngsiv2",
    attribute_times: bool = False,
) -> ParsedEntity:
    """The entity of a body in normalized form.

    Args:
        body: one entity as JSON, as the broker sent it.
        service: the service it was read from.
        service_path_hint: its service path where that is known; else the body says, and if it doesn't, the root path.
        form: how the body is written; the entity comes in NGSIv2's normalized form from both.
        attribute_times: metadata `dateModified` is the broker's, and no part of the entity; NGSI-LD's always is.

    Raises:
        EntityError: the body isn't one JSON object.
    """
    entity = _json_object(body)
    if form == "ngsi-ld":
        from contexture.ngsi.linked_data.entity import linked_data_entity

        return linked_data_entity(entity, body, service=service, attribute_times=attribute_times)
    shadowed: list[str] = []
    created_at = _take_time(entity, "dateCreated", shadowed)
    modified_at = _take_time(entity, "dateModified", shadowed)
    expires_at = _take_time(entity, "dateExpires", shadowed)
    path = _take_service_path(entity, service_path_hint, shadowed) or _ROOT
    attributes = _attributes(entity)
    return ParsedEntity(
        _identity(service, path, entity),
        entity,
        attributes,
        created_at,
        modified_at,
        tuple(shadowed) if shadowed else (),
        body,
        attribute_times=_take_attribute_times(attributes) if attribute_times else None,
        expires_at=expires_at,
    )


def _json_object(body: bytes) -> dict[str, object]:
    try:
        value = parse_json(body)
    except (ValueError, TypeError, RecursionError) as error:
        # orjson reads deeper than it writes and says so by a TypeError; either depth is beyond what the rule allows.
        rule = "nesting" if isinstance(error, TypeError) or "depth limit" in str(error) else "body"
        raise _not_an_entity(f"the body isn't JSON that can be read ({error})", rule) from error
    if not isinstance(value, dict):
        raise _not_an_entity(f"the body is a JSON {type(value).__name__}, not an object", "body")
    return value


def _not_an_entity(message: str, rule: str) -> EntityError:
    return EntityError(message[:200], next_step="correct the entity in its source", rule=rule)


def _identity(service: str, path: str, entity: dict[str, object]) -> ContextIdentity:
    entity_id, entity_type = entity.get("id"), entity.get("type")
    return ContextIdentity(
        service,
        path,
        entity_id if isinstance(entity_id, str) else "",
        entity_type if isinstance(entity_type, str) else "",
    )


def _attributes(entity: dict[str, object]) -> dict[str, object]:
    attributes = entity.copy()
    for name in _IDENTIFIERS:
        attributes.pop(name, None)
    return attributes


def _take_attribute_times(attributes: dict[str, object]) -> dict[str, datetime]:
    times: dict[str, datetime] = {}
    for name, attribute in attributes.items():
        metadata = attribute.get("metadata") if isinstance(attribute, dict) else None
        if not isinstance(metadata, dict):
            continue
        shown = metadata.get("dateModified")
        if not isinstance(shown, dict) or shown.get("type") != "DateTime":
            continue
        moment = broker_time(shown.get("value"))
        if moment is not None:
            times[name] = moment
            del metadata["dateModified"]
    return times


def _take_time(entity: dict[str, object], name: str, shadowed: list[str]) -> datetime | None:
    attribute = entity.get(name)
    if attribute is None:
        return None
    if not isinstance(attribute, dict):
        moment = broker_time(attribute)
    else:
        moment = broker_time(attribute.get("value")) if attribute.get("type") == "DateTime" else None
    if moment is None:
        shadowed.append(name)
    else:
        del entity[name]
    return moment


def _take_service_path(entity: dict[str, object], known: str | None, shadowed: list[str]) -> str | None:
    """The path that is known, whatever a user attribute of that name says; else the one that the body says."""
    attribute = entity.get("servicePath")
    if attribute is None:
        return known
    if not isinstance(attribute, dict):
        path = attribute
    else:
        path = attribute.get("value") if attribute.get("type") == "Text" else None
    if isinstance(path, str) and path.startswith(_ROOT) and known in (None, path):
        del entity["servicePath"]
        return path
    shadowed.append("servicePath")
    return known


def broker_time(value: object) -> datetime | None:
    """The moment a broker's builtin time says, in UTC, or None when it says none.

    A broker means UTC where it names no zone.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is UTC:
            return moment
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
