"""The types and paths of the page's application: Airflow loads them in all of its processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

PREFIX: Final = "/contexture"
"""The path of the page in Airflow's API server; the endpoint of notifications is below it, and is mounted first."""

VIEW: Final = {"name": "Contexture", "href": f"{PREFIX}/", "destination": "nav", "url_route": "contexture"}
"""The entry in Airflow's navigation: the page in a frame."""

AIRFLOW: Final = "contexture.airflow"
"""Where a request keeps Airflow's own application, which mounts the page."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
