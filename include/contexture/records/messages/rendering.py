"""From an entity to the topics, key and value of its records, by one publication's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import orjson

from contexture.events import AttributeName, ContextIdentity, identity_key
from contexture.publications import NgsiPublication
from contexture.records.messages import ngsi_bodies, ngsi_ld
from contexture.records.messages.content import BodyMaker, Content, Form, MessageError
from contexture.records.topics import TopicNamer
from contexture.sources.ngsi.attributes import instance_key

KeyMaker = Callable[[ContextIdentity, str, AttributeName | None, Mapping[str, object]], bytes | None]

FIELDS = ("id", "type", "service", "service_path")
"""Fields of the identity that may be the key; other names are those of attributes."""


def key_maker(choice: str) -> KeyMaker:
    """The function that gives each record its key: called with identity, topic, attribute (or None) and entity.

    Args:
        choice: the publication's `message.key`: `identity`, `none`, `topic`, one of `FIELDS`, or the name of an
            attribute, whose value is the key: a text as it is, everything else as its JSON text.
    """
    return _MAKERS.get(choice) or _value_of(choice)


def _identity(
    identity: ContextIdentity, _topic: str, attribute: AttributeName | None, _entity: Mapping[str, object]
) -> bytes:
    return identity_key(identity, attribute)


def _none(
    _identity: ContextIdentity, _topic: str, _attribute: AttributeName | None, _entity: Mapping[str, object]
) -> None:
    return None


def _topic(
    _identity: ContextIdentity, topic: str, _attribute: AttributeName | None, _entity: Mapping[str, object]
) -> bytes:
    return topic.encode()


def _field(name: str) -> KeyMaker:
    read: Callable[[ContextIdentity], str] = attrgetter(name)
    return lambda identity, _topic, _attribute, _entity: read(identity).encode()


def _value_of(name: str) -> KeyMaker:
    def make(
        _identity: ContextIdentity, _topic: str, _attribute: AttributeName | None, entity: Mapping[str, object]
    ) -> bytes:
        attribute = entity.get(name)
        value = attribute.get("value") if isinstance(attribute, Mapping) else None
        if value is None:
            raise MessageError(
                f"the record's key is the value of {name[:100]!r}, and the entity has none",
                next_step="give it a value in the source, or choose another message.key",
            )
        return value.encode() if isinstance(value, str) else orjson.dumps(value)

    return make


_MAKERS: dict[str, KeyMaker] = {
    "identity": _identity,
    "none": _none,
    "topic": _topic,
    **{name: _field(name) for name in FIELDS},
}


ServiceOf = Callable[[ContextIdentity, "str | None"], str]


def body_makers(publication: NgsiPublication, namer: TopicNamer) -> dict[str, BodyMaker]:
    """The makers of a publication's bodies, by `message.format`."""
    return {
        "ngsiv2": _ngsiv2,
        "cygnus-lines": cygnus_line_maker(namer.header_service),
        "ngsiv1": _ngsiv1,
        "ngsi-ld": ngsi_ld_maker(publication.source.context),
    }


def cygnus_line_maker(service_of: ServiceOf) -> BodyMaker:
    """The maker of Cygnus' lines.

    Args:
        service_of: the service that a line's header tells, from the identity and the attribute's name: the mapped one
            where name mappings are on. Path and body are the original ones either way, as in Cygnus.
    """

    def make(content: Content) -> bytes:
        identity, attribute = content.identity, content.attribute
        return ngsi_bodies.line(
            service=service_of(identity, attribute.name if attribute is not None else None),
            service_path=identity.service_path,
            timestamp_ms=content.received_at_ms,
            entity=content.entity,
            attribute=_member(attribute),
            context_element=content.context_element,
        )

    return make


def ngsi_ld_maker(context: str | None) -> BodyMaker:
    """The maker of NGSI-LD entities; `context` is the address of the @context the source's names are compacted by."""

    def make(content: Content) -> bytes:
        return ngsi_ld.body(content.entity, content.linked_data, content.attribute, context=context)

    return make


def _ngsiv2(content: Content) -> bytes:
    name = _member(content.attribute)
    return ngsi_bodies.ngsiv2_body(content.entity if name is None else _only(content.entity, name))


def _ngsiv1(content: Content) -> bytes:
    return ngsi_bodies.ngsiv1_body(content.entity, _member(content.attribute), content.context_element)


def _only(entity: Form, name: str) -> dict[str, object]:
    return {member: entity[member] for member in ("id", "type", name) if member in entity}


def _member(attribute: AttributeName | None) -> str | None:
    """The name under which the attribute stands in the NGSIv2 form; each instance of NGSI-LD has its own."""
    return None if attribute is None else instance_key(attribute.name, attribute.dataset_id)


class Rendered(NamedTuple):
    """One event as it will be sent: the same key and value to each of the topics."""

    topics: tuple[str, ...]
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders the events of one publication; made once, called for every event."""

    name_topics: TopicNamer
    make_key: KeyMaker
    make_body: BodyMaker

    def __call__(
        self,
        identity: ContextIdentity,
        entity: Mapping[str, object],
        attribute: AttributeName | None,
        received_at_ms: int,
        linked_data: Mapping[str, object] | None = None,
        context_element: Mapping[str, object] | None = None,
    ) -> Rendered:
        """The event's topics, key and value.

        Args:
            identity: whose event it is.
            entity: id, type and attributes in NGSIv2's normalized form.
            attribute: the only attribute the event tells, or None for all of them.
            received_at_ms: when it was received, milliseconds since 1970.
            linked_data: the NGSI-LD entity as received, where the source speaks NGSI-LD.
            context_element: the NGSIv1 context element as received, where it came as one.

        Raises:
            TopicNameError: a topic's name is illegal.
            MessageError: the event can't be written in the publication's format, or lacks its key.
        """
        topics = self._topics(identity, entity, attribute)
        key = self.make_key(identity, topics[0], attribute, entity)
        content = Content(identity, entity, attribute, received_at_ms, linked_data, context_element)
        return Rendered(topics, key, self.make_body(content))

    def _topics(
        self, identity: ContextIdentity, entity: Mapping[str, object], attribute: AttributeName | None
    ) -> tuple[str, ...]:
        if attribute is None:
            return self.name_topics(identity)
        return self.name_topics(identity, attribute.name, type_of(entity, attribute))


def type_of(entity: Mapping[str, object], attribute: AttributeName) -> str:
    """The NGSI type of an entity's attribute; empty where it has none."""
    member = entity.get(instance_key(attribute.name, attribute.dataset_id))
    attribute_type = member.get("type") if isinstance(member, Mapping) else None
    return attribute_type if isinstance(attribute_type, str) else ""


def renderer(publication: NgsiPublication) -> Renderer:
    """The renderer of a publication of entities.

    Raises:
        ConfigurationError: its naming isn't supported.
    """
    namer = TopicNamer(publication.topics)
    return Renderer(
        namer, key_maker(publication.message.key), body_makers(publication, namer)[publication.message.format]
    )
