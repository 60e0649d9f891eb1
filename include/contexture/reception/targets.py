"""Publications as targets of notifications: each with one inbox that lasts as long as the process."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, Protocol

from contexture.errors import RetriableError
from contexture.publications import NgsiPublication, Publication
from contexture.publications.fields import path_contains
from contexture.reception.access import Access
from contexture.sources.ngsi.entity import TYPE_SEPARATOR
from contexture.sources.ngsi.notifications.notification import Notification, NotificationError
from contexture.sources.ngsi.notifications.parsing import MAXIMUM_BYTES
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter


class Inbox(Protocol):
    """Stores notifications; `contexture.storage.inbox_writer.InboxWriter` is one."""

    def submit(self, headers: Mapping[str, str], body: bytes) -> Future[None]:
        """Hands a notification over; the future is done when it is stored durably.

        Raises:
            InboxUnavailableError: it cannot be stored now; the future's error may be this too.
        """


@dataclass(frozen=True, slots=True)
class NotificationTarget:
    """A publication that is notified.

    Attributes:
        service: the publication's; empty is the broker's default tenant, whose notifications name none.
        service_paths: the publication's selection, such as `/a` or `/a/#`.
        access: who may notify it.
        inbox: where its notifications go.
        maximum_bytes: of one notification.
        types: the entity types of the publication's selection; empty is all.
        ids: the entities of the publication's selection; empty is all.
        api: the interface that the publication reads; None takes notifications of any.
    """

    service: str
    service_paths: tuple[str, ...]
    access: Access
    inbox: Inbox
    maximum_bytes: int = MAXIMUM_BYTES
    types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    api: Literal["ngsiv2", "ngsi-ld"] | None = None

    def check(self, notification: Notification) -> None:
        """Refuses what the publication does not select.

        Raises:
            NotificationError: another service or interface, or a path, type or id outside the selection.
        """
        self._check_service(notification)
        if notification.form != "ngsi-ld":  # which knows no service paths
            self._check_paths(notification)
        self._check_form(notification)
        self._check_entities(notification)

    def _check_service(self, notification: Notification) -> None:
        # NGSI-LD keeps the case of a tenant.
        given = notification.service if self.api == "ngsi-ld" else notification.service.lower()
        if given != self.service:
            raise _foreign(
                f"the service {notification.service[:50]!r} is not the publication's",
                "correct the subscription's service or its URL",
            )

    def _check_paths(self, notification: Notification) -> None:
        for path in sorted({entity.service_path for entity in notification.entities}):
            if not any(path_contains(selected, path) for selected in self.service_paths):
                raise _foreign(
                    f"the service path {path[:60]!r} is outside the publication's selection",
                    "correct the subscription's service path or its URL",
                )

    def _check_form(self, notification: Notification) -> None:
        # The same entity has another identity and content there.
        if self.api is not None and (notification.form == "ngsi-ld") != (self.api == "ngsi-ld"):
            raise _foreign(
                f"the notification is {notification.form}, and the publication reads {self.api}",
                "subscribe by the interface that `source.api` names",
            )

    def _check_entities(self, notification: Notification) -> None:
        # A full run would not find such an entity, and would treat it as deleted.
        for entity in notification.entities:
            # An NGSI-LD entity of several types is selected by any of them.
            names = entity.type.split(TYPE_SEPARATOR) if notification.form == "ngsi-ld" else [entity.type]
            if self.types and not set(names).intersection(self.types):
                raise _foreign(
                    f"the type {entity.type[:60]!r} is outside the publication's selection",
                    "correct the types in the subscription's subject, or those of the publication",
                )
            if self.ids and entity.id not in self.ids:
                raise _foreign(
                    f"the id {entity.id[:60]!r} is outside the publication's selection",
                    "correct the ids in the subscription's subject, or those of the publication",
                )


def _foreign(message: str, next_step: str) -> NotificationError:
    return NotificationError(message, next_step=next_step, status=400)


def receives_notifications(publication: Publication) -> bool:
    return publication.source.mode == "notifications"


class Inboxes:
    """The inboxes of publications, opened when they are first used."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._writers: dict[str, InboxWriter] = {}

    def of(self, publication: str) -> InboxWriter:
        """Returns the inbox of a publication.

        Raises:
            RetriableError: its folder can't be made.
        """
        if publication not in self._writers:
            try:
                self._writers[publication] = InboxWriter(self._home.publication(publication).open_inbox_folder())
            except OSError as error:
                raise RetriableError(
                    f"the inbox of {publication} can't be made: {error.strerror or error}",
                    next_step=f"make room or repair {self._home.root}",
                ) from error
        return self._writers[publication]

    def close(self) -> None:
        """Stores what waits, and accepts no more."""
        for writer in self._writers.values():
            writer.close()


def target_of(publication: Publication, access: Access, inboxes: Inboxes) -> NotificationTarget:
    """Returns the target of a publication.

    Raises:
        RetriableError: its inbox can't be made.
    """
    source = NgsiPublication.of(publication).source
    return NotificationTarget(
        source.service,
        source.service_path,
        access,
        inboxes.of(publication.name),
        types=source.types,
        ids=source.ids,
        api=source.api,
    )
