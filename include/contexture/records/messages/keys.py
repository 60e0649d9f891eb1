"""Record keys: what Kafka partitions and compacts by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

import orjson

from contexture.events import AttributeName, ContextIdentity, identity_key
from contexture.records.messages.content import MessageError

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


def record_key(
    choice: str,
    *,
    identity: ContextIdentity,
    topic: str,
    attribute: AttributeName | None = None,
    entity: Mapping[str, object] | None = None,
) -> bytes | None:
    """The key of one record; for many records call `key_maker` once.

    Raises:
        MessageError: the key is the value of an attribute that the entity hasn't got.

    >>> record_key("identity", identity=ContextIdentity("vehicles", "/4wheels", "car1", "car"), topic="vehicles")
    b'["vehicles","/4wheels","car1","car"]'
    """
    return key_maker(choice)(identity, topic, attribute, entity or {})


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
