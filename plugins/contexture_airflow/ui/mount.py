"""Where the page stands in Airflow. Airflow loads plugins in all of its processes: nothing big is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

PREFIX: Final = "/contexture"
"""The path of the page in Airflow's API server; the endpoint of notifications stands below it, and is mounted first."""

VIEW: Final = {"name": "Contexture", "href": f"{PREFIX}/", "destination": "nav", "url_route": "contexture"}
"""The entry in Airflow's navigation: the page in a frame."""

AIRFLOW: Final = "contexture.airflow"
"""Where a request keeps Airflow's own application, which mounts the page."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Page:
    """The ASGI application that Airflow mounts; it is made when it is first asked for something.

    Args:
        build: makes the application that answers.
    """

    def __init__(self, build: Callable[[], Application] | None = None) -> None:
        self._build = build or _build
        self._building = asyncio.Lock()
        self._application: Application | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        async with self._building:
            if self._application is None:
                self._application = await asyncio.to_thread(self._build)
        await self._application({**scope, AIRFLOW: scope.get("app")}, receive, send)


def _build() -> Application:
    from contexture_airflow.ui.airflow_database import AirflowDatabase
    from contexture_airflow.ui.application import application
    from contexture_airflow.ui.installation import Installation

    return application(Installation(AirflowDatabase()))
