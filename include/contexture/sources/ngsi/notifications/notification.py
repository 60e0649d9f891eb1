"""A notification, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from contexture.errors import RejectedError
from contexture.events import Operation

BAD_REQUEST = 400
TOO_LARGE = 413
UNSUPPORTED_MEDIA = 415


class NotificationError(RejectedError):
    """The notification can't be taken as it is, and sending it again is useless; nothing of it was taken."""

    @property
    def status(self) -> int:
        """The HTTP status that answers it."""
        return int(str(self.context.get("status", BAD_REQUEST)))


def refused(message: str, next_step: str, status: int = BAD_REQUEST) -> NotificationError:
    """The error that answers a request with `status`."""
    return NotificationError(message, next_step=next_step, status=status)


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
    """What one request shows.

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


_PREFIX = "application/json; notified="
_FORMS = {f"{_PREFIX}{form}": form for form in get_args(Form)}


def media_type_of(form: Form) -> str:
    """The media type of a row whose body was notified in this form."""
    return f"{_PREFIX}{form}"


def notified_form(media_type: str) -> Form | None:
    """The form a row's body was notified in; None when it was not notified."""
    return _FORMS.get(media_type)
