"""The content of a body: one event with its entity in each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import orjson

from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity

Form = Mapping[str, object]


class Content(NamedTuple):
    """One event on its way into a body.

    Attributes:
        identity: whose event it is.
        entity: id, type and attributes in NGSIv2's normalized form, whatever the source speaks.
        attribute: the only attribute of the event, or None for all of them.
        received_at_ms: when it was received, milliseconds since 1970.
        linked_data: the NGSI-LD entity as received, where the source speaks NGSI-LD.
        context_element: the NGSIv1 context element as received, where it came as one.
    """

    identity: ContextIdentity
    entity: Form
    attribute: AttributeName | None
    received_at_ms: int
    linked_data: Form | None = None
    context_element: Form | None = None


BodyMaker = Callable[[Content], bytes]


class MessageError(RejectedError):
    """This event can't be written in the publication's message format."""


CORRECT_ENTITY = "correct the entity in its source"


def write_json(value: object, write: Callable[[object], bytes] = orjson.dumps) -> bytes:
    """Writes an entity in one of its forms as JSON.

    Raises:
        MessageError: it can't be written as UTF-8 JSON.
    """
    try:
        return write(value)
    except TypeError as error:
        raise MessageError(f"the entity cannot be written as JSON ({error})", next_step=CORRECT_ENTITY) from error


def missing_attribute_error(name: str) -> MessageError:
    return MessageError("the entity lacks the attribute the event is for", next_step="report this", name=name)
