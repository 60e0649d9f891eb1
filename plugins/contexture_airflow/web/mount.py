"""Mounts the page in Airflow. Airflow loads plugins in all of its processes: nothing heavy is imported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from contexture_airflow.web.asgi import AIRFLOW, Application, Message, Receive, Send


class WebPage:
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
    from contexture_airflow.web.airflow_database import AirflowDatabase
    from contexture_airflow.web.application import application
    from contexture_airflow.web.installation import Installation

    return application(Installation(AirflowDatabase()))
