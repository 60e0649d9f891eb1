"""The entity of an `ngsi-ld` body: whole or one attribute of it, with the @context by which its names can be read."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from contexture.events import AttributeName
from contexture.messages.errors import MessageError
from contexture.messages.ngsi_ld.attributes import converted
from contexture.messages.ngsi_ld.uris import entity_uri
from contexture.ngsi.linked_data.attributes import instance_key, instances

CORE_CONTEXT = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.8.jsonld"
"""The @context of NGSI-LD itself (ETSI GS CIM 009, 4.4); names it doesn't define fall under its default vocabulary."""

_CONTEXT = "@context"
_KEPT = ("id", "type", "scope")


def body(
    entity: Mapping[str, object],
    linked_data: Mapping[str, object] | None = None,
    attribute: AttributeName | None = None,
    *,
    context: str | None = None,
) -> bytes:
    """The entity as compact JSON (`application/ld+json`); number literals as received.

    Args:
        entity: id, type and attributes in NGSIv2's normalized form; converted when there is no `linked_data`.
        linked_data: the NGSI-LD entity as its source sent it; written as it is.
        attribute: the only attribute to write (`dm-by-attribute`); all of them when None.
        context: address of the @context that the source's names are compacted by; the core context is added to it.

    Raises:
        MessageError: the entity has no NGSI-LD form, lacks the attribute, or isn't UTF-8.
    """
    whole = _converted(entity, attribute) if linked_data is None else _received(linked_data, attribute)
    if _CONTEXT not in whole:
        whole[_CONTEXT] = CORE_CONTEXT if not context or context == CORE_CONTEXT else [context, CORE_CONTEXT]
    try:
        return orjson.dumps(whole)
    except TypeError as error:
        raise MessageError(
            f"the entity can't be written as JSON ({error})", next_step="correct the entity in its source"
        ) from error


def _converted(entity: Mapping[str, object], attribute: AttributeName | None) -> dict[str, object]:
    entity_id, entity_type = entity.get("id"), entity.get("type")
    if not isinstance(entity_id, str) or not isinstance(entity_type, str) or not entity_id or not entity_type:
        raise MessageError("an NGSI-LD entity needs an id and a type", next_step="name both in the source")
    head = {"id": entity_uri(entity_id, entity_type), "type": entity_type}
    if attribute is None:
        return {**head, **{name: converted(name, entity[name]) for name in entity if name not in ("id", "type")}}
    member = instance_key(attribute.name, attribute.dataset_id)
    if member not in entity:
        raise _lacks(attribute)
    return {**head, attribute.name: converted(attribute.name, entity[member])}


def _received(linked_data: Mapping[str, object], attribute: AttributeName | None) -> dict[str, object]:
    if attribute is None:
        return dict(linked_data)
    if attribute.name not in linked_data:
        raise _lacks(attribute)
    kept = {name: linked_data[name] for name in _KEPT if name in linked_data}
    context = {_CONTEXT: linked_data[_CONTEXT]} if _CONTEXT in linked_data else {}
    return {**kept, attribute.name: _instance(linked_data[attribute.name], attribute), **context}


def _instance(attribute: object, wanted: AttributeName) -> object:
    """The instance that the event tells; the default one has no datasetId."""
    for dataset_id, instance in instances(wanted.name, attribute):
        if dataset_id == wanted.dataset_id:
            return instance
    raise _lacks(wanted)


def _lacks(attribute: AttributeName) -> MessageError:
    return MessageError("the entity lacks the attribute the event is for", next_step="report this", name=attribute.name)
