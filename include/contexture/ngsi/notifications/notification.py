"""A notification, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from contexture.events import Operation

Form = Literal["ngsiv1", "ngsiv2", "ngsi-ld"]


@dataclass(frozen=True, slots=True)
class NotifiedEntity:
    """One entity of a notification.

    Attributes:
        operation: `delete` when the broker said that the entity is gone.
        service_path: whose it is, from the notification's header.
        id, type: as the entity says; empty where it doesn't say.
        body: the entity as JSON, number literals as they were sent: an NGSIv1 context element as it was received, an
            NGSIv2 entity without the builtin `alterationType`, an NGSI-LD entity with the notification's `@context`.
    """

    operation: Operation
    service_path: str
    id: str
    type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Notification:
    """What one request tells.

    Attributes:
        form: how the request words it.
        service: the tenant, as the header says it (not lower-cased), or the default.
        correlator: the header `Fiware-Correlator` as it was sent; None without one.
        subscription: the id of the subscription, where the request tells it.
        entities: in the order they were sent.
    """

    form: Form
    service: str
    correlator: str | None
    subscription: str | None
    entities: tuple[NotifiedEntity, ...]
