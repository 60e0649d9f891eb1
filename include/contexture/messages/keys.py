"""Record keys: what Kafka partitions and compacts by."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from contexture.errors import ConfigurationError
from contexture.events import AttributeName, ContextIdentity, identity_key

KeyMaker = Callable[[ContextIdentity, str, AttributeName | None], bytes | None]

FIELDS = ("id", "type", "service", "service_path")
"""Fields of the identity that may be the key; the topic, the identity and none are the other choices."""


def key_maker(choice: str) -> KeyMaker:
    """The function that gives each record its key: called with identity, topic and attribute (or None).

    Args:
        choice: the publication's `message.key`: `identity`, `none`, `topic` or one of `FIELDS`.

    Raises:
        ConfigurationError: there is no such choice.
    """
    if choice in _MAKERS:
        return _MAKERS[choice]
    raise ConfigurationError(
        f"message.key {choice!r} is unknown", next_step=f"use one of {', '.join(_MAKERS)}", key=choice
    )


def record_key(
    choice: str, *, identity: ContextIdentity, topic: str, attribute: AttributeName | None = None
) -> bytes | None:
    """The key of one record; for many records call `key_maker` once.

    >>> record_key("identity", identity=ContextIdentity("vehicles", "/4wheels", "car1", "car"), topic="vehicles")
    b'["vehicles","/4wheels","car1","car"]'
    """
    return key_maker(choice)(identity, topic, attribute)


def _identity(identity: ContextIdentity, _topic: str, attribute: AttributeName | None) -> bytes:
    return identity_key(identity, attribute)


def _none(_identity: ContextIdentity, _topic: str, _attribute: AttributeName | None) -> None:
    return None


def _topic(_identity: ContextIdentity, topic: str, _attribute: AttributeName | None) -> bytes:
    return topic.encode()


def _field(name: str) -> KeyMaker:
    read: Callable[[ContextIdentity], str] = attrgetter(name)
    return lambda identity, _topic, _attribute: read(identity).encode()


_MAKERS: dict[str, KeyMaker] = {
    "identity": _identity,
    "none": _none,
    "topic": _topic,
    **{name: _field(name) for name in FIELDS},
}
