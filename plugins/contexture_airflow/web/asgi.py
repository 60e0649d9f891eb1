"""How Airflow mounts the page: its paths and its application, which is built when it is first requested.

Airflow loads plugins in all of its processes: nothing heavy is imported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

PREFIX: Final = "/contexture"
"""The path of the page in Airflow's API server; the endpoint of notifications is below it, and is mounted first."""

VIEW: Final = {"name": "Contexture", "href": f"{PREFIX}/", "destination": "nav", "url_route": "contexture"}
"""The entry in Airflow's navigation: the page in a frame."""

TAB: Final = "/airflow"
"""The path of the tabs, below `PREFIX`."""

_DAG, _RUN, _TASK = "dag={DAG_ID}", "run={RUN_ID}", "task={TASK_ID}&map_index={MAP_INDEX}"
TABS: Final = tuple(
    {
        "name": "Contexture",
        "href": f"{PREFIX}{TAB}?{'&'.join(which)}",
        "destination": destination,
        "url_route": f"contexture-{destination.replace('_', '-')}",
    }
    for destination, which in {
        "dag": (_DAG,),
        "dag_run": (_DAG, _RUN),
        "task_instance": (_DAG, _RUN, _TASK),
    }.items()
)
"""The tabs on a DAG, a run and a task of Airflow, which puts ids in place of the names in braces."""

AIRFLOW: Final = "contexture.airflow"
"""Where a request keeps Airflow's own application, which mounts the page."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


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
