"""From an entity to the topics, key and value of its records, by one publication's rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from contexture.errors import ConfigurationError
from contexture.events import AttributeName, ContextIdentity
from contexture.messages.content import BodyMaker, Content
from contexture.messages.formats import body_makers
from contexture.messages.keys import KeyMaker, key_maker
from contexture.ngsi.linked_data.attributes import instance_key
from contexture.publications import Publication
from contexture.topics import TopicNamer


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


def renderer(publication: Publication) -> Renderer:
    """The renderer of a publication.

    Raises:
        ConfigurationError: its naming or format isn't supported.
    """
    namer = TopicNamer(publication.topics)
    makers = body_makers(publication, namer)
    maker = makers.get(publication.message.format)
    if maker is None:
        raise ConfigurationError(
            f"message.format {publication.message.format} is not yet supported",
            next_step=f"use one of {', '.join(makers)}",
        )
    return Renderer(namer, key_maker(publication.message.key), maker)
