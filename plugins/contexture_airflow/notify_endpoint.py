"""The endpoint `/contexture/notify/<publication>` in Airflow's API server.

Airflow protects none of a plugin's applications, so this one asks for the secret of an Airflow connection itself. Only
this module is imported before the first notification arrives: Airflow loads plugins in all of its processes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from contexture.publications import Publication
    from contexture.reception import Access, NotificationTarget
    from contexture.reception.targets import Inboxes

PREFIX: Final = "/contexture/notify"
REFRESH_SECONDS: Final = 30.0
"""How long a changed publication or secret may stay unnoticed."""
RETRY_SECONDS: Final = 5.0
"""How long nothing is taken after nothing could be."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

log = logging.getLogger(__name__)


class NotifyEndpoint:
    """The ASGI application that Airflow mounts.

    Args:
        build: makes the application that answers; called at the first request, and now and then after it.
        clock: seconds.
    """

    def __init__(
        self, build: Callable[[], Application] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._build = build or Receptions().build
        self._clock = clock
        self._refreshing = asyncio.Lock()
        self._application: Application | None = None
        self._due_at = clock()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        application = await self._current()
        await (application or _unavailable)({**scope, "headers": _own(scope["headers"])}, receive, send)

    async def _current(self) -> Application | None:
        async with self._refreshing:
            if self._clock() >= self._due_at:
                try:
                    self._application = await asyncio.to_thread(self._build)
                    self._due_at = self._clock() + REFRESH_SECONDS
                except Exception as error:  # whatever it is, the notifier must hear that nothing was kept
                    self._due_at = self._clock() + RETRY_SECONDS
                    # Without a traceback: the error says what to do.
                    log.error("notifications cannot be received with the present configuration: %s", error)  # noqa: TRY400
            return self._application


class Receptions:
    """Makes the reception of all publications in mode `notifications`, again and again with the same inboxes."""

    def __init__(self) -> None:
        self._inboxes: Inboxes | None = None

    def build(self) -> Application:
        """The application for the publications as they are now; those without a secret take nothing.

        Raises:
            ContextureError: the folder of publications or the home can't be used.
        """
        from contexture.reception.application import reception
        from contexture.reception.targets import Inboxes, receives_notifications
        from contexture_airflow.catalogue import publications
        from contexture_airflow.connections.settings import open_home

        inboxes = self._inboxes = self._inboxes or Inboxes(open_home())
        targets: dict[str, NotificationTarget] = {}
        for publication in filter(receives_notifications, publications()):
            target = _target(publication, inboxes)
            if target is not None:
                targets[publication.name] = target
        return reception(targets, prefix="")


def notifier_access(connection_id: str) -> Access:
    """Who may notify by an Airflow connection: its password as a bearer token, or its login and password as a user.

    Raises:
        ConfigurationError: there is no such connection, or no password in it.
    """
    from contexture.errors import ConfigurationError
    from contexture.reception import Credentials
    from contexture_airflow.connections.settings import connection

    found = connection(connection_id)
    if not found.password:
        raise ConfigurationError(
            f"the Airflow connection {connection_id!r} has no password",
            next_step="write the secret that notifiers show into its password",
            connection=connection_id,
        )
    if found.login:
        return Credentials.of(users=[(found.login, found.password)])
    return Credentials.of(tokens=[found.password])


def _target(publication: Publication, inboxes: Inboxes) -> NotificationTarget | None:
    from contexture.errors import ConfigurationError
    from contexture.publications import NgsiPublication
    from contexture.reception.targets import target_of

    try:
        notifier = NgsiPublication.of(publication).source.notifier_connection
        return target_of(publication, notifier_access(notifier), inboxes)
    except ConfigurationError as error:
        log.error("%s receives no notifications: %s", publication.name, error)  # noqa: TRY400 - it says what to do
        return None


def _own(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that the notifier sent.

    Where everybody is administrator (a setting for trials), Airflow adds an Authorization of its own behind them.
    """
    shown = [header for header in headers if header[0] == b"authorization"]
    return [header for header in headers if header not in shown[1:]]


async def _unavailable(scope: Message, receive: Receive, send: Send) -> None:
    body = b'{"error":"ServiceUnavailable","description":"notifications can not be taken now; nothing was kept"}'
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"30"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
