"""NGSIv1's context elements: attributes and metadata as lists instead of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contexture.messages.errors import MessageError

_NEXT_STEP = "correct the entity in its source"
_MEMBERS = ("name", "type", "value", "metadatas")
_ABSENT: dict[str, object] = {}

Attributes = list[dict[str, object]]


def attributes_of(entity: Mapping[str, object], attribute: str | None = None) -> Attributes:
    """The attributes of an entity in NGSIv2's normalized form as NGSIv1 lists them, in the order received.

    Args:
        entity: id, type and attributes.
        attribute: the only attribute to list; all of them when None.

    Raises:
        MessageError: the attribute isn't there, or one isn't an object.
    """
    if attribute is None:
        return [_attribute(name, member) for name, member in entity.items() if name not in ("id", "type")]
    if attribute not in entity:
        raise _lacks(attribute)
    return [_attribute(attribute, entity[attribute])]


def received_attributes(element: Mapping[str, object], attribute: str | None = None) -> Attributes:
    """The attributes of a context element as it was received, without members that NGSIv1 doesn't know.

    Args:
        element: a context element.
        attribute: the only attribute to list, with all its entries; all of them when None.

    Raises:
        MessageError: the attribute isn't there, or its list isn't one of objects.
    """
    listed = element.get("attributes")
    attributes = [_received(item) for item in (listed if isinstance(listed, Iterable) else ())]
    if attribute is None:
        return attributes
    chosen = [item for item in attributes if item.get("name") == attribute]
    if not chosen:
        raise _lacks(attribute)
    return chosen


def _lacks(attribute: str) -> MessageError:
    return MessageError("the entity lacks the attribute the event is for", next_step="report this", name=attribute)


def _received(attribute: object) -> dict[str, object]:
    if not isinstance(attribute, Mapping):
        raise MessageError("an attribute of the context element isn't an object", next_step=_NEXT_STEP)
    known = {name: attribute[name] for name in _MEMBERS if name in attribute}
    known.setdefault("metadatas", [])
    return known


def _attribute(name: str, attribute: object) -> dict[str, object]:
    if not isinstance(attribute, dict):
        raise MessageError("an attribute isn't an object with a value", next_step=_NEXT_STEP, attribute=name[:100])
    return {
        "name": name,
        "type": attribute.get("type"),
        "value": attribute.get("value"),
        "metadatas": _metadatas(attribute.get("metadata", _ABSENT)),
    }


def _metadatas(metadata: object) -> list[dict[str, object]] | None:
    if metadata == _ABSENT:
        return []
    if isinstance(metadata, dict):
        return [_metadata(name, member) for name, member in metadata.items()]
    if metadata is None:
        return None
    raise MessageError("the metadata of an attribute isn't an object", next_step=_NEXT_STEP)


def _metadata(name: str, metadata: object) -> dict[str, object]:
    if not isinstance(metadata, dict):
        raise MessageError("a metadata isn't an object with a value", next_step=_NEXT_STEP, metadata=name[:100])
    return {"name": name, "type": metadata.get("type"), "value": metadata.get("value")}
