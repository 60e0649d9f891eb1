"""The types and paths of the page's application: Airflow loads them in all of its processes."""

from __future__ import annotations

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
