"""The content of a body: one event with its entity in each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity

Form = Mapping[str, object]


class Content(NamedTuple):
    """One event on its way into a body.

    Attributes:
        identity: whose event it is.
        entity: id, type and attributes in NGSIv2's normalized form, whatever the source speaks.
        attribute: the only attribute the event tells, or None for all of them.
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
