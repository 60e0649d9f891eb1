"""NGSIv1 entities in NGSIv2's normalized form.

Of each attribute and metadata name, type and value stay, absent where they were absent; lists become objects in the
same order. What NGSIv2 has no place for (`isPattern`) stands in the context element alone, which is kept as received.
"""

from __future__ import annotations

from collections.abc import Mapping

from contexture.ngsi.notifications.errors import refused

_NEXT_STEP = "send contextElement as NGSIv1 has it: attributes are a list of {name, type, value, metadatas}"


def normalized(element: Mapping[str, object]) -> dict[str, object]:
    """The entity of a `contextElement`.

    Raises:
        NotificationError: attributes or metadatas are no lists of named objects, or one stands twice.
    """
    entity: dict[str, object] = {name: element[name] for name in ("id", "type") if name in element}
    for attribute in _listed(element.get("attributes"), "attributes"):
        name = _name(attribute, "an attribute")
        if name in entity:
            raise refused(f"the attribute {name[:60]!r} stands twice, or is called like a member", _NEXT_STEP)
        entity[name] = _member(attribute, _metadata(attribute))
    return entity


def _metadata(attribute: Mapping[str, object]) -> dict[str, object]:
    if "metadatas" not in attribute:
        return {}
    if attribute["metadatas"] is None:
        return {"metadata": None}
    metadata: dict[str, object] = {}
    for item in _listed(attribute["metadatas"], "metadatas"):
        name = _name(item, "a metadata")
        if name in metadata:
            raise refused(f"the metadata {name[:60]!r} stands twice", _NEXT_STEP)
        metadata[name] = _member(item, {})
    return {"metadata": metadata}


def _member(item: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    return {**{name: item[name] for name in ("type", "value") if name in item}, **more}


def _listed(value: object, what: str) -> list[dict[str, object]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise refused(f"{what} are no list of objects", _NEXT_STEP)
    return value


def _name(item: Mapping[str, object], what: str) -> str:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise refused(f"{what} has no name", _NEXT_STEP)
    return name
