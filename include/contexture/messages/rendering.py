"""From an entity to the topics, key and value of its records, by one publication's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from contexture.errors import ConfigurationError
from contexture.events import AttributeName, ContextIdentity
from contexture.messages import cygnus_lines, ngsiv2
from contexture.messages.keys import KeyMaker, key_maker
from contexture.publications import Publication
from contexture.topics import TopicNamer

BodyMaker = Callable[[ContextIdentity, Mapping[str, object], "str | None", int], bytes]


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
    ) -> Rendered:
        """The event's topics, key and value.

        Args:
            identity: whose event it is.
            entity: id, type and attributes in NGSIv2's normalized form.
            attribute: the only attribute the event tells, or None for all of them.
            received_at_ms: when it was received, milliseconds since 1970.

        Raises:
            TopicNameError: a topic's name is illegal.
            MessageError: the event can't be written in the publication's format.
        """
        name = attribute.name if attribute is not None else None
        topics = self.name_topics(identity, name)
        key = self.make_key(identity, topics[0], attribute)
        return Rendered(topics, key, self.make_body(identity, entity, name, received_at_ms))


def renderer(publication: Publication) -> Renderer:
    """The renderer of a publication.

    Raises:
        ConfigurationError: its naming, key or format isn't supported.
    """
    return Renderer(TopicNamer(publication.topics), key_maker(publication.message.key), _body_maker(publication))


def _body_maker(publication: Publication) -> BodyMaker:
    maker = _MAKERS.get(publication.message.format)
    if maker is None:
        raise ConfigurationError(
            f"message.format {publication.message.format} is not yet supported",
            next_step=f"use one of {', '.join(_MAKERS)}",
        )
    return maker


def _ngsiv2(_identity: ContextIdentity, entity: Mapping[str, object], attribute: str | None, _ms: int) -> bytes:
    return ngsiv2.body(entity if attribute is None else _only(entity, attribute))


def _cygnus_line(identity: ContextIdentity, entity: Mapping[str, object], attribute: str | None, ms: int) -> bytes:
    return cygnus_lines.line(
        service=identity.service,
        service_path=identity.service_path,
        timestamp_ms=ms,
        entity=entity,
        attribute=attribute,
    )


def _only(entity: Mapping[str, object], attribute: str) -> dict[str, object]:
    return {name: entity[name] for name in ("id", "type", attribute) if name in entity}


_MAKERS: dict[str, BodyMaker] = {"ngsiv2": _ngsiv2, "cygnus-lines": _cygnus_line}
