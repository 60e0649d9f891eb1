"""An NGSI-LD attribute as NGSIv2's normalized form shows it: type, value, and metadata for all its other members.

Nothing is lost but the broker's own members (`createdAt` …): what NGSIv2 has no place for becomes metadata, and what
is below metadata becomes metadata of a dotted name (`accuracy.unitCode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

_SYSTEM_MEMBERS = frozenset(("createdAt", "modifiedAt", "deletedAt", "instanceId"))

_VALUE_MEMBER = {
    "Property": "value",
    "Relationship": "object",
    "GeoProperty": "value",
    "LanguageProperty": "languageMap",
    "VocabProperty": "vocab",
    # The name that Orion-LD gives it.
    "VocabularyProperty": "vocab",
    "JsonProperty": "json",
    "ListProperty": "valueList",
    "ListRelationship": "objectList",
}
_CONCISE = {member: kind for kind, member in reversed(_VALUE_MEMBER.items())}
_VALUE_MEMBERS = frozenset(_VALUE_MEMBER.values())
_NULL = "urn:ngsi-ld:null"
_MOMENTS = frozenset(("observedAt", "expiresAt"))


def ngsiv2_attribute(instance: object) -> object:
    """Returns one instance of an attribute in NGSIv2's normalized form; what is no attribute is returned as it is.

    An attribute whose value is absent is returned without one; the rules find that.
    """
    if type(instance) is not dict:
        return instance
    kind, member = _kind(instance)
    attribute: dict[str, object] = {"type": kind}
    if member in instance:
        attribute = _typed(kind, instance[member])
    attribute["metadata"] = dict(_metadata(instance, member, ""))
    return attribute


def is_system_member(name: str, value: object) -> bool:
    """Whether a broker added a member by itself (clause 4.8); never part of a body or a content hash.

    An attribute that a user called `createdAt` or `instanceId` is an object or a list of instances; what a broker adds
    is a text, or an object with `@value`.
    """
    return name in _SYSTEM_MEMBERS and is_plain(value)


def is_plain(value: object) -> bool:
    """Whether a member is a value of the entity itself, such as a time or a scope, and no attribute.

    >>> is_plain("/Madrid"), is_plain({"@value": "2026-01-01T00:00:00Z"}), is_plain({"type": "Property", "value": 1})
    (True, True, False)
    """
    items = value if isinstance(value, list) else [value]
    return all("@value" in item for item in items if isinstance(item, dict))


def value_member(kind: str) -> str:
    """Returns the member in which an attribute of this kind has its value.

    >>> value_member("Relationship")
    'object'
    """
    return _VALUE_MEMBER.get(kind, "value")


def instances(name: str, attribute: object) -> Iterator[tuple[str | None, object]]:
    """Yields the instances of an attribute, each with its datasetId; the default instance has none (clause 4.5.5).

    A list of anything else, as in the simplified form, is one value, in which the rules find no attribute. Objects that
    have neither the type of an attribute nor the member of its value are such a list too.
    """
    if type(attribute) is not list or not attribute or not all(map(_is_instance, attribute)):
        yield _dataset_of(attribute), attribute
        return
    for instance in attribute:
        yield _dataset_of(instance), instance


def is_removed(attribute: object) -> bool:
    """Whether an instance of an attribute, or a member such as `scope`, says that it was removed (clause 4.5.0).

    Notifications and histories contain what was removed, once.
    """
    if not isinstance(attribute, dict):
        return attribute == _NULL
    if "deletedAt" in attribute and is_system_member("deletedAt", attribute["deletedAt"]):
        return True
    return any(member in attribute and _is_null(attribute[member]) for member in _VALUE_MEMBERS)


def without_removed(attribute: object) -> object:
    """Returns an attribute, or a list of its instances, without the instances and sub-attributes that were removed.

    None where nothing is left of it.
    """
    if type(attribute) is list and attribute and all(map(_is_instance, attribute)):
        return [without_removed(item) for item in attribute if not is_removed(item)] or None
    if is_removed(attribute):
        return None
    if type(attribute) is not dict:
        return attribute
    member = _kind(attribute)[1]
    kept = {name: item if name == member else without_removed(item) for name, item in attribute.items()}
    return {name: item for name, item in kept.items() if item is not None or attribute[name] is None}


def instance_key(name: str, dataset_id: str | None) -> str:
    """Returns the name of an instance among NGSIv2 attributes: that of the attribute for the default instance."""
    return name if dataset_id is None else f"{name}:{dataset_id}"


def without_system_members(value: object) -> object:
    """Returns an attribute, or a list of its instances, without what the broker adds, at any depth."""
    if type(value) is list:
        return [without_system_members(item) for item in value]
    if type(value) is not dict:
        return value
    member = _kind(value)[1]
    return {
        name: item if name == member else without_system_members(item)
        for name, item in value.items()
        if not is_system_member(name, item)
    }


def inferred(value: object) -> str:
    """Returns the NGSIv2 type of a value that has none, as a broker chooses it."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int | float | orjson.Fragment):
        return "Number"
    return "Text" if isinstance(value, str) else "StructuredValue"


def _is_null(value: object) -> bool:
    return value == _NULL or value == {"@none": _NULL}


def _is_instance(item: object) -> bool:
    if type(item) is not dict:
        return False
    kind = item.get("type")
    if isinstance(kind, str) and kind in _VALUE_MEMBER:
        return True
    return "datasetId" in item or not _VALUE_MEMBERS.isdisjoint(item)


def _dataset_of(instance: object) -> str | None:
    dataset_id = instance.get("datasetId") if isinstance(instance, dict) else None
    return dataset_id if isinstance(dataset_id, str) and dataset_id != "@none" else None


def _kind(instance: Mapping[str, object]) -> tuple[str, str]:
    """Returns the kind of an attribute and the member of its value; in the concise form, the member shows the kind."""
    kind = instance.get("type")
    if isinstance(kind, str):
        return kind, value_member(kind)
    for member, concise_kind in _CONCISE.items():
        if member in instance:
            return concise_kind, member
    return "Property", "value"


def _typed(kind: str, value: object) -> dict[str, object]:
    if kind == "GeoProperty":
        return {"type": "geo:json", "value": value}
    if kind != "Property":
        return {"type": kind, "value": value}
    if isinstance(value, dict) and "@value" in value:
        named = value.get("@type")
        inner = value["@value"]
        return {"type": named.rsplit("/", 1)[-1] if isinstance(named, str) else inferred(inner), "value": inner}
    return {"type": inferred(value), "value": value}


def _metadata(instance: Mapping[str, object], holder: str, above: str) -> Iterator[tuple[str, object]]:
    for name, item in instance.items():
        if name in ("type", holder) or is_system_member(name, item):
            continue
        if name in _MOMENTS and is_plain(item):
            yield above + name, {"type": "DateTime", "value": item}
        elif type(item) is list and item and all(type(one) is dict for one in item):
            for dataset_id, one in instances(name, item):
                yield from _sub_attribute(above + instance_key(name, dataset_id), one)
        else:
            yield from _sub_attribute(above + name, item)


def _sub_attribute(name: str, item: object) -> Iterator[tuple[str, object]]:
    if type(item) is not dict:
        yield name, {"type": inferred(item), "value": item}
        return
    kind, member = _kind(item)
    yield name, _typed(kind, item[member]) if member in item else {"type": kind, "value": None}
    yield from _metadata(item, member, f"{name}.")
