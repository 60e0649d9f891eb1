"""An entity as the broker sent it, parsed: its identity, when it changed, and its attributes.

The builtins that a pull requests (`dateCreated`, `dateModified`, `dateExpires`, `servicePath`) are separated from the
user's attributes, so that neither a body nor a content hash contains them. A user's attribute of the same name hides
the builtin in the broker's response. It stays an attribute, and the builtin is unknown: 15 of 65 public examples of
Smart Data Models have such an attribute. Where the two cannot be distinguished, `shadowed` names the builtin.

That model is NGSIv2's normalized form. For publications in the form `ngsi-ld`, the entity is also stored as it was
received, without the broker's own members. Decisions on types, scopes and datasetId: docs/decisions/0011.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Set
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity, parse_json
from contexture.sources.ngsi.attributes import (
    inferred,
    instance_key,
    instances,
    is_plain,
    is_system_member,
    ngsiv2_attribute,
    without_removed,
    without_system_members,
)

TIME_BUILTINS = ("dateCreated", "dateModified", "dateExpires")
BUILTIN_NAMES = (*TIME_BUILTINS, "servicePath")

EntityForm = Literal["ngsiv2", "ngsi-ld"]

_ROOT = "/"
_BROKER_TIMES_MARGIN = timedelta(days=1)
"""How far the times of an entity and of its attributes may contradict each other: a broker's clocks differ."""
_IDENTIFIERS = ("id", "type")


class EntityError(RejectedError):
    """What the source sent isn't one JSON object; `context["rule"]` names the rule it breaks."""


class ParsedEntity(msgspec.Struct, frozen=True):
    """One entity, taken apart.

    Attributes:
        identity: of the entity; an id or type that is absent or not a string is an empty string.
        entity: id, type and the user's attributes in the order they were sent, number literals as they were sent.
        attributes: name to attribute, in the same order and without id and type.
        created_at: the broker's time of creation, UTC, where it was sent.
        modified_at: the broker's time of the last change, UTC, where it was sent.
        shadowed: the builtins that cannot be distinguished from a user's attribute of the same name, or that the
            identity needs and such an attribute hides.
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
        """Returns the name in its source of the attribute with the key `key` in `attributes`."""
        return (self.datasets or {}).get(key) or AttributeName(key)


def parse_entity(
    body: bytes,
    *,
    service: str,
    service_path_hint: str | None = None,
    form: EntityForm = "ngsiv2",
    attribute_times: bool | None = False,
) -> ParsedEntity:
    """Parses an entity in normalized form.

    Args:
        body: one entity as JSON, as the broker sent it.
        service: the service it was read from.
        service_path_hint: its service path where that is known; else that of the body, or the root path.
        form: how the body is written; the entity comes in NGSIv2's normalized form from both.
        attribute_times: whether metadata `dateModified` was requested. It is then no part of the entity, and every
            attribute of the user has it and no builtin does. None where that is not known, as of a notification: then
            the entity itself has to show it. False: what looks like a builtin is one. In NGSI-LD the times of
            attributes are always the broker's; they are returned unless this is False.

    Raises:
        EntityError: the body is not one JSON object.
    """
    entity = _json_object(body)
    if form == "ngsi-ld":
        return linked_data_entity(entity, body, service=service, attribute_times=attribute_times is not False)
    shadowed: list[str] = []
    if attribute_times is None:
        # An attribute of the user that carries metadata `dateModified` proves that it was requested.
        attribute_times = any(_attribute_time(attribute) is not None for attribute in entity.values())
        if not attribute_times:
            shadowed += [name for name in BUILTIN_NAMES if _may_be_either(entity, name, service_path_hint)]
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
        attribute_times=_take_attribute_times(attributes, created_at, modified_at) if attribute_times else None,
        expires_at=expires_at,
    )


def _json_object(body: bytes) -> dict[str, object]:
    try:
        value = parse_json(body)
    except (ValueError, TypeError, RecursionError) as error:
        # orjson reads deeper than it writes and says so by a TypeError; either depth is beyond what the rule allows.
        rule = "nesting" if isinstance(error, TypeError) or "depth limit" in str(error) else "body"
        raise _not_an_entity(f"the body is not JSON that can be read ({error})", rule) from error
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


def is_users(attribute: Mapping[str, object], kind: str) -> bool:
    """Whether an attribute called like a builtin is certainly the user's: builtins have one type and no metadata."""
    return attribute.get("type") != kind or bool(attribute.get("metadata"))


def _may_be_either(entity: Mapping[str, object], name: str, path: str | None) -> bool:
    """Whether a member may be the builtin of its name as well as an attribute of the user."""
    return name in entity and _builtin_value(entity[name], name, path) is not None


def _builtin_value(attribute: object, name: str, path: str | None) -> datetime | str | None:
    """Returns the value of a builtin; None where the member is certainly an attribute of the user."""
    kind = "Text" if name == "servicePath" else "DateTime"
    if isinstance(attribute, dict):
        if is_users(attribute, kind):
            return None
        attribute = attribute.get("value")
    if name != "servicePath":
        return broker_time(attribute)
    return (
        attribute if isinstance(attribute, str) and attribute.startswith(_ROOT) and path in (None, attribute) else None
    )


def _attribute_time(attribute: object) -> datetime | None:
    """Returns the time in an attribute's metadata `dateModified`; None where it has none."""
    metadata = attribute.get("metadata") if isinstance(attribute, dict) else None
    shown = metadata.get("dateModified") if isinstance(metadata, dict) else None
    if not isinstance(shown, dict) or shown.get("type") != "DateTime":
        return None
    return broker_time(shown.get("value"))


def _take_attribute_times(
    attributes: dict[str, object], created_at: datetime | None, modified_at: datetime | None
) -> dict[str, datetime]:
    """Takes the broker's times out of the metadata; what cannot be the broker's stays, because a user wrote it."""
    times: dict[str, datetime] = {}
    for name, attribute in attributes.items():
        moment = _attribute_time(attribute)
        if moment is None:
            continue
        if created_at is not None and created_at - moment > _BROKER_TIMES_MARGIN:
            continue
        if modified_at is not None and moment - modified_at > _BROKER_TIMES_MARGIN:
            continue
        times[name] = moment
        del attribute["metadata"]["dateModified"]  # type: ignore[index]  # `_attribute_time` has found it there
    return times


def _take_time(entity: dict[str, object], name: str, shadowed: Collection[str]) -> datetime | None:
    if name not in entity or name in shadowed:
        return None
    moment = _builtin_value(entity[name], name, None)
    if moment is not None:
        del entity[name]
    return moment  # type: ignore[return-value]  # a time, of these names


def _take_service_path(entity: dict[str, object], known: str | None, shadowed: list[str]) -> str | None:
    """The path that is known, whatever a user's attribute of that name contains; else the builtin of the body."""
    if "servicePath" not in entity or "servicePath" in shadowed:
        return known
    path = _builtin_value(entity["servicePath"], "servicePath", known)
    if path is not None:
        del entity["servicePath"]
    elif known is None:
        # The identity needs the builtin, and the attribute hides it.
        shadowed.append("servicePath")
    return path or known  # type: ignore[return-value]  # a text, of this name


def broker_time(value: object) -> datetime | None:
    """Returns the moment of a broker's builtin time, in UTC (also where it names no zone); None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is UTC:
            return moment
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


SERVICE_PATH = "/"
"""The path of all NGSI-LD entities: scopes may change and there may be several, so they are no part of an identity."""

TYPE_SEPARATOR = ","

_NO_ATTRIBUTES = frozenset(("id", "type", "@context"))
_REMOVED = re.compile(rb'"(?:urn:ngsi-ld:null|deletedAt)"')
"""Marks of what was removed: without them, no attribute needs to be checked."""
_PLAIN_MEMBERS = frozenset(("scope", "expiresAt"))


def linked_data_entity(
    document: dict[str, object], body: bytes, *, service: str, attribute_times: bool = False
) -> ParsedEntity:
    """Parses a document in NGSI-LD's normalized form, or in the concise one with members for every value.

    A bare value (`"speed": 50`) is no attribute here: it could also be the simplified form, which leaves out the kind
    of attribute. An attribute that was removed (`urn:ngsi-ld:null`, as notifications write it) is absent.

    Args:
        attribute_times: whether to return the time of each instance's own last change.

    Raises:
        EntityError: two attributes would have one name.
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
    """Returns one name for the types of an entity, sorted and joined by commas; None where there is none."""
    if isinstance(given, str):
        return given or None
    if isinstance(given, list) and given and all(isinstance(name, str) for name in given):
        return TYPE_SEPARATOR.join(sorted(given))
    return None


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
            message = f"two instances of {name!a} have the name {key!a}"
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
    """Returns the text of a broker's own time; None for anything else, also a user's attribute of that name."""
    if isinstance(value, dict):
        value = value.get("@value")
    return value if isinstance(value, str) else None


def _moment(value: object) -> datetime | None:
    return broker_time(system_time(value))


_REFERENCE = re.compile(r"ref[A-Z]")
_URN = re.compile(r"urn:ngsi-ld:([^:]+):")


def targets(parsed: ParsedEntity, types: Set[str] = frozenset()) -> list[str]:
    """Returns the ids that an entity refers to, in order.

    `types` are the only types there are, where that is known: a URN that names another one is left out.
    """
    found: list[str] = []
    for name, attribute in parsed.attributes.items():
        # Nearly no attribute gets further than this line.
        if isinstance(attribute, dict) and (attribute.get("type") == "Relationship" or name.startswith("ref")):
            found += _named_by(name, attribute)
    return [target for target in found if _may_be_of(types, target)] if types else found


def _named_by(name: str, attribute: Mapping[str, object]) -> Iterator[str]:
    is_reference = attribute.get("type") == "Relationship" or _REFERENCE.match(name)
    return _texts(attribute.get("value")) if is_reference else iter(())


def _may_be_of(types: Set[str], target: str) -> bool:
    urn = _URN.match(target)
    return urn is None or urn[1] in types


def _texts(value: object) -> Iterator[str]:
    values = value if isinstance(value, list) else (value,)
    return (each for each in values if isinstance(each, str) and each)
