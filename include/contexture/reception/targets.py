"""Publications as targets of notifications: who may notify each, and its inbox, which lasts as long as the process."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Protocol

from starlette.requests import Request

from contexture.errors import ConfigurationError, RetriableError
from contexture.publications import NgsiPublication, Publication
from contexture.publications.fields import path_contains
from contexture.sources.ngsi.entity import TYPE_SEPARATOR
from contexture.sources.ngsi.notifications.notification import Notification, NotificationError
from contexture.sources.ngsi.notifications.parsing import MAXIMUM_BYTES
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_NEXT_STEP = "give a bearer token, or a user and a password, of printable ASCII characters"


class Access(Protocol):
    """Decides about requests."""

    def allows(self, request: Request) -> bool:
        """Whether the request may notify."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Bearer tokens, and users with passwords (Basic, RFC 7617). Only their hashes are stored.

    Raises:
        ConfigurationError: there are none, or one can't be sent in a header.
    """

    _hashes: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, *, tokens: Iterable[str] = (), users: Iterable[tuple[str, str]] = ()) -> Credentials:
        known = [f"bearer {_checked(token)}" for token in tokens]
        for user, password in users:
            if ":" in user:
                raise ConfigurationError("a user of the reception holds a colon", next_step=_NEXT_STEP)
            known.append(f"basic {_checked(user)}:{_checked(password)}")
        if not known:
            raise ConfigurationError("the reception has no credentials", next_step=_NEXT_STEP)
        return cls(tuple(_hash(item.encode()) for item in known))

    def allows(self, request: Request) -> bool:
        shown = request.headers.getlist("authorization")
        found = _hash(_shown(shown[0]) if len(shown) == 1 else b"")
        # All are compared, and hashes of one length, so that the time shows nothing.
        return sum(hmac.compare_digest(found, known) for known in self._hashes) > 0


@dataclass(frozen=True, slots=True)
class ThisMachineOnly:
    """All clients on this machine, without a secret: for tests.

    The server has to listen on a loopback address, and what came through a proxy is refused, because a proxy's requests
    come from this machine regardless of the sender.

    Args:
        without_credentials: must be True, so that it is always explicit.

    Raises:
        ConfigurationError: it is not.
    """

    without_credentials: bool

    def __post_init__(self) -> None:
        if self.without_credentials is not True:
            raise ConfigurationError("the reception has no credentials", next_step=_NEXT_STEP)

    def allows(self, request: Request) -> bool:
        if any(name in request.headers for name in _FORWARDED):
            return False
        ends = (request.scope.get("server"), request.scope.get("client"))
        return all(end is not None and _is_loopback(end[0]) for end in ends)


def _shown(authorization: str) -> bytes:
    scheme, _, value = authorization.strip().partition(" ")
    kind = scheme.lower()
    content = value.strip().encode("latin-1", "replace")
    if kind == "basic":
        try:
            content = b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            return b""
    return kind.encode("latin-1", "replace") + b" " + content


def _checked(secret: str) -> str:
    if not secret or not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ConfigurationError("a credential of the reception cannot be used", next_step=_NEXT_STEP)
    return secret


def _hash(content: bytes) -> bytes:
    return sha256(content).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


TOKEN_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN_FILE"  # noqa: S105 - the name of a variable


def credentials(environment: Mapping[str, str], file: Path | None = None) -> Credentials:
    """Returns credentials with the token of the variable, and each line of the file (two, while one replaces another).

    Args:
        environment: the variables of the process.
        file: the file; that of the variable when None.

    Raises:
        ConfigurationError: there is no token, the file can't be read, or a token can't be sent in a header.
    """
    named = file or (Path(environment[TOKEN_FILE_VARIABLE]) if environment.get(TOKEN_FILE_VARIABLE) else None)
    tokens = [environment[TOKEN_VARIABLE]] if environment.get(TOKEN_VARIABLE) else []
    tokens += _lines(named) if named is not None else []
    if not tokens:
        raise ConfigurationError(
            "notifiers have to send a token, and none is set",
            next_step=f"set {TOKEN_VARIABLE}, or name a file in {TOKEN_FILE_VARIABLE} or by --token-file; for a test "
            "on this machine alone, use --without-credentials",
        )
    return Credentials.of(tokens=tokens)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            f"the file of tokens {file} cannot be read: {reason}", next_step="write one token in each of its lines"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]


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
                    f"the inbox of {publication} cannot be created: {error.strerror or error}",
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
