"""An NGSI-LD entity taken apart into the one model that rules, names and bodies work on.

That model is NGSIv2's normalized form. Beside it the entity stays as it was received, without the broker's own members,
for whoever publishes `ngsi-ld`. Decisions on types, scopes and datasetId: docs/decisions/0011.
"""

from __future__ import annotations

import re
from datetime import datetime

from contexture.events import AttributeName, ContextIdentity
from contexture.ngsi.entity import EntityError, ParsedEntity, broker_time
from contexture.ngsi.linked_data.attributes import (
    inferred,
    instance_key,
    instances,
    is_plain,
    is_system_member,
    ngsiv2_attribute,
    without_removed,
    without_system_members,
)

SERVICE_PATH = "/"
"""NGSI-LD has no service paths: a scope may change and there may be several, an identity can't."""

TYPE_SEPARATOR = ","

_NO_ATTRIBUTES = frozenset(("id", "type", "@context"))
_REMOVED = re.compile(rb'"(?:urn:ngsi-ld:null|deletedAt)"')
"""Marks of what was removed: without them, no attribute needs to be checked."""
_PLAIN_MEMBERS = frozenset(("scope", "expiresAt"))


def linked_data_entity(
    document: dict[str, object], body: bytes, *, service: str, attribute_times: bool = False
) -> ParsedEntity:
    """The entity of a document in NGSI-LD's normalized form, or in the concise one with members for every value.

    A value that stands alone (`"speed": 50`) is no attribute here: it can't be told from the simplified form, which
    leaves out what kind of attribute it is. An attribute that was removed (`urn:ngsi-ld:null`, as notifications write
    it) is absent.

    Args:
        document: the entity, number literals kept.
        body: the bytes it was read from.
        service: the tenant it was read from.
        attribute_times: whether the times of each instance's own last change are wanted.

    Raises:
        EntityError: two attributes would stand under one name.
    """
    if _REMOVED.search(body):
        document = _without_removed(document)
    attributes: dict[str, object] = {}
    datasets: dict[str, AttributeName] = {}
    times: dict[str, datetime] | None = {} if attribute_times else None
    for name, value in document.items():
        if name in _NO_ATTRIBUTES or is_system_member(name, value):
            continue
        if _is_plain_member(name, value):
            attributes[name] = _plain(name, value)
        else:
            _take(name, value, attributes, datasets, times)
    entity_id, kind = document.get("id"), type_name(document.get("type"))
    head: dict[str, object] = {name: value for name, value in (("id", entity_id), ("type", kind)) if value is not None}
    return ParsedEntity(
        identity=ContextIdentity(service, SERVICE_PATH, entity_id if isinstance(entity_id, str) else "", kind or ""),
        entity={**head, **attributes},
        attributes=attributes,
        created_at=_moment(document.get("createdAt")),
        modified_at=_moment(document.get("modifiedAt")),
        shadowed=(),
        body=body,
        linked_data={
            name: value if name in _NO_ATTRIBUTES or _is_plain_member(name, value) else without_system_members(value)
            for name, value in document.items()
            if not is_system_member(name, value)
        },
        datasets=datasets or None,
        attribute_times=times,
        expires_at=_moment(document.get("expiresAt")),
    )


def _without_removed(document: dict[str, object]) -> dict[str, object]:
    kept = {
        name: value if name in _NO_ATTRIBUTES or is_system_member(name, value) else without_removed(value)
        for name, value in document.items()
    }
    return {name: value for name, value in kept.items() if value is not None or document[name] is None}


def type_name(given: object) -> str | None:
    """One name for the types of an entity: several are sorted and joined by commas; None where there is none."""
    if isinstance(given, str):
        return given or None
    if isinstance(given, list) and given and all(isinstance(name, str) for name in given):
        return TYPE_SEPARATOR.join(sorted(given))
    return None


def narrowed(linked_data: dict[str, object], attribute: AttributeName) -> dict[str, object]:
    """The entity as received with one instance of one attribute only."""
    value = linked_data.get(attribute.name)
    for dataset_id, instance in instances(attribute.name, value):
        if dataset_id == attribute.dataset_id:
            value = instance
    names = ("id", "type", "@context")
    return {**{name: linked_data[name] for name in names if name in linked_data}, attribute.name: value}


def _take(
    name: str,
    value: object,
    attributes: dict[str, object],
    datasets: dict[str, AttributeName],
    times: dict[str, datetime] | None,
) -> None:
    # Brokers keep no order among instances: sorted, the same content always looks the same.
    for dataset_id, instance in sorted(instances(name, value), key=lambda item: item[0] or ""):
        key = instance_key(name, dataset_id)
        if key in attributes:
            message = f"two instances of {name!a} stand under the name {key!a}"
            raise EntityError(message[:200], next_step="give every instance its own datasetId", rule="body")
        attributes[key] = ngsiv2_attribute(instance)
        if dataset_id is not None:
            datasets[key] = AttributeName(name, dataset_id)
        if times is not None and isinstance(instance, dict):
            modified_at = _moment(instance.get("modifiedAt"))
            if modified_at is not None:
                times[key] = modified_at


def _plain(name: str, value: object) -> dict[str, object]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = sorted(value)
    return {"type": "DateTime" if name == "expiresAt" else inferred(value), "value": value, "metadata": {}}


def _is_plain_member(name: str, value: object) -> bool:
    return name in _PLAIN_MEMBERS and is_plain(value)


def system_time(value: object) -> str | None:
    """The text of a broker's own time; None for anything else, an attribute that a user called like it included."""
    if isinstance(value, dict):
        value = value.get("@value")
    return value if isinstance(value, str) else None


def _moment(value: object) -> datetime | None:
    return broker_time(system_time(value))
