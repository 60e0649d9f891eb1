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
from contexture.records.messages.content import BodyMaker, Content, Form, MessageError, write_json
from contexture.records.topics import TopicNamer
from contexture.sources.ngsi.attributes import instance_key

KeyMaker = Callable[[ContextIdentity, str, AttributeName | None, Form], bytes | None]

FIELDS = ("id", "type", "service", "service_path")
"""Fields of the identity that may be the key; other names are those of attributes."""


def key_maker(choice: str) -> KeyMaker:
    """Returns the function that makes each record's key, called with identity, topic, attribute (or None) and entity.

    Args:
        choice: the publication's `message.key`: `identity`, `none`, `topic`, one of `FIELDS`, or the name of an
            attribute, whose value is the key: a text as it is, everything else as its JSON text.
    """
    return _MAKERS.get(choice) or _value_of(choice)


def _field(name: str) -> KeyMaker:
    read: Callable[[ContextIdentity], str] = attrgetter(name)
    return lambda identity, _topic, _attribute, _entity: read(identity).encode()


def _value_of(name: str) -> KeyMaker:
    def make(_identity: ContextIdentity, _topic: str, _attribute: AttributeName | None, entity: Form) -> bytes:
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
    "identity": lambda identity, _topic, attribute, _entity: identity_key(identity, attribute),
    "none": lambda _identity, _topic, _attribute, _entity: None,
    "topic": lambda _identity, topic, _attribute, _entity: topic.encode(),
    **{name: _field(name) for name in FIELDS},
}


ServiceOf = Callable[[ContextIdentity, "str | None"], str]


def body_makers(publication: NgsiPublication, namer: TopicNamer) -> dict[str, BodyMaker]:
    """Returns the makers of a publication's bodies, by `message.format`."""
    context = publication.source.context
    return {
        "ngsiv2": _ngsiv2,
        "cygnus-lines": cygnus_line_maker(namer.header_service),
        "ngsiv1": _ngsiv1,
        "ngsi-ld": lambda content: ngsi_ld.body(
            content.entity, content.linked_data, content.attribute, context=context
        ),
    }


def cygnus_line_maker(service_of: ServiceOf) -> BodyMaker:
    """Returns the maker of Cygnus' lines.

    Args:
        service_of: the service in a line's header, from the identity and the attribute's name: the mapped one where
            name mappings are on. Path and body are the original ones either way, as in Cygnus.
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


def _ngsiv2(content: Content) -> bytes:
    name = _member(content.attribute)
    entity = content.entity
    return write_json(entity if name is None else {key: entity[key] for key in ("id", "type", name) if key in entity})


def _ngsiv1(content: Content) -> bytes:
    return ngsi_bodies.ngsiv1_body(content.entity, _member(content.attribute), content.context_element)


def _member(attribute: AttributeName | None) -> str | None:
    """Returns the name of an attribute in the NGSIv2 form, where each instance of NGSI-LD has its own."""
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
        entity: Form,
        attribute: AttributeName | None,
        received_at_ms: int,
        linked_data: Form | None = None,
        context_element: Form | None = None,
    ) -> Rendered:
        """Returns the event's topics, key and value; parameters as the fields of `Content`.

        Raises:
            TopicNameError: a topic's name is illegal.
            MessageError: the event can't be written in the publication's format, or lacks its key.
        """
        topics = self._topics(identity, entity, attribute)
        key = self.make_key(identity, topics[0], attribute, entity)
        content = Content(identity, entity, attribute, received_at_ms, linked_data, context_element)
        return Rendered(topics, key, self.make_body(content))

    def _topics(self, identity: ContextIdentity, entity: Form, attribute: AttributeName | None) -> tuple[str, ...]:
        if attribute is None:
            return self.name_topics(identity)
        return self.name_topics(identity, attribute.name, type_of(entity, attribute))


def type_of(entity: Form, attribute: AttributeName) -> str:
    """Returns the NGSI type of an entity's attribute; empty where it has none."""
    member = entity.get(instance_key(attribute.name, attribute.dataset_id))
    attribute_type = member.get("type") if isinstance(member, Mapping) else None
    return attribute_type if isinstance(attribute_type, str) else ""


def renderer(publication: NgsiPublication) -> Renderer:
    """Returns the renderer of a publication of entities.

    Raises:
        ConfigurationError: its naming isn't supported.
    """
    namer = TopicNamer(publication.topics)
    return Renderer(
        namer, key_maker(publication.message.key), body_makers(publication, namer)[publication.message.format]
    )
