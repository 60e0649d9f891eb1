"""A parsed notification, and the error of one that is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from contexture.errors import RejectedError
from contexture.events import Operation

BAD_REQUEST = 400
TOO_LARGE = 413
UNSUPPORTED_MEDIA = 415


class NotificationError(RejectedError):
    """The notification cannot be accepted as it is, and sending it again is useless; nothing of it was stored."""

    @property
    def status(self) -> int:
        return int(str(self.context.get("status", BAD_REQUEST)))


def refused(message: str, next_step: str, status: int = BAD_REQUEST) -> NotificationError:
    """Returns the error that leads to a response with `status`."""
    return NotificationError(message, next_step=next_step, status=status)


Form = Literal["ngsiv1", "ngsiv2", "ngsi-ld"]


@dataclass(frozen=True, slots=True)
class NotifiedEntity:
    """One entity of a notification.

    Attributes:
        operation: `delete` when the broker reported that the entity was deleted.
        service_path: of the entity, from the notification's header.
        id, type: those of the entity; empty where it has none.
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
    """The content of one request.

    Attributes:
        form: of the request.
        service: the tenant, as in the header (not lower-cased), or the default.
        correlator: the header `Fiware-Correlator` as it was sent; None without one.
        subscription: the id of the subscription, where the request contains it.
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
    """Returns the media type of a row whose body was notified in this form."""
    return f"{_PREFIX}{form}"


def notified_form(media_type: str) -> Form | None:
    """Returns the form in which a row's body was notified; None when it was not notified."""
    return _FORMS.get(media_type)
