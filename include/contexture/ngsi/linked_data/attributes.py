"""An NGSI-LD attribute as NGSIv2's normalized form shows it: type, value, and metadata for all that stands beside them.

Nothing is lost but the broker's own members (`createdAt` …): what NGSIv2 has no place for becomes metadata, and what
stands below metadata becomes metadata of a dotted name (`accuracy.unitCode`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

SYSTEM_MEMBERS = frozenset(("createdAt", "modifiedAt", "deletedAt", "instanceId"))
"""What a broker adds by itself (clause 4.8); never part of a body or a content hash."""

_VALUE_MEMBER = {
    "Property": "value",
    "Relationship": "object",
    "GeoProperty": "value",
    "LanguageProperty": "languageMap",
    "VocabProperty": "vocab",
    "JsonProperty": "json",
    "ListProperty": "valueList",
    "ListRelationship": "objectList",
}
_CONCISE = {member: kind for kind, member in reversed(_VALUE_MEMBER.items())}
_MOMENTS = frozenset(("observedAt", "expiresAt"))


def ngsiv2_attribute(instance: object) -> object:
    """One instance of an attribute in NGSIv2's normalized form; what is no attribute comes back as it is.

    An attribute whose value is absent comes back without one, for the rules to find.
    """
    if type(instance) is not dict:
        return instance
    kind, member = _kind(instance)
    attribute: dict[str, object] = {"type": kind}
    if member in instance:
        attribute = _typed(kind, instance[member])
    attribute["metadata"] = dict(_metadata(instance, member, ""))
    return attribute


def value_member(kind: str) -> str:
    """The member in which an attribute of this kind has its value.

    >>> value_member("Relationship")
    'object'
    """
    return _VALUE_MEMBER.get(kind, "value")


def instances(name: str, attribute: object) -> Iterator[tuple[str | None, object]]:
    """The instances of an attribute, each with its datasetId; the default instance has none (clause 4.5.5).

    A list of anything else, as in the simplified form, is one thing that the rules find no attribute in.
    """
    if type(attribute) is not list or not attribute or not all(type(item) is dict for item in attribute):
        yield _dataset_of(attribute), attribute
        return
    for instance in attribute:
        yield _dataset_of(instance), instance


def instance_key(name: str, dataset_id: str | None) -> str:
    """The name under which an instance stands among NGSIv2 attributes: the default one under the attribute's own."""
    return name if dataset_id is None else f"{name}:{dataset_id}"


def without_system_members(value: object) -> object:
    """An attribute, or a list of its instances, without what the broker adds, at any depth of sub-attributes."""
    if type(value) is list:
        return [without_system_members(item) for item in value]
    if type(value) is not dict:
        return value
    member = _kind(value)[1]
    return {
        name: item if name == member else without_system_members(item)
        for name, item in value.items()
        if name not in SYSTEM_MEMBERS
    }


def inferred(value: object) -> str:
    """The NGSIv2 type of a value that has none, as a broker chooses it."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int | float | orjson.Fragment):
        return "Number"
    return "Text" if isinstance(value, str) else "StructuredValue"


def _dataset_of(instance: object) -> str | None:
    dataset_id = instance.get("datasetId") if isinstance(instance, dict) else None
    return dataset_id if isinstance(dataset_id, str) and dataset_id != "@none" else None


def _kind(instance: Mapping[str, object]) -> tuple[str, str]:
    """The kind of an attribute and the member that holds its value; told by that member in the concise form."""
    kind = instance.get("type")
    if isinstance(kind, str):
        return kind, value_member(kind)
    for member, meant in _CONCISE.items():
        if member in instance:
            return meant, member
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
        if name in SYSTEM_MEMBERS or name in ("type", holder):
            continue
        if name in _MOMENTS:
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
