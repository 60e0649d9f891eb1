"""The one file of Contexture that Airflow executes as a plugin; everything else is in the package beside it."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from contexture_airflow.notify import PREFIX, NotifyEndpoint


class ContexturePlugin(AirflowPlugin):
    """Makes Contexture show up under Admin, Plugins, and takes notifications in the API server."""

    name = "contexture"
    fastapi_apps: ClassVar[list[Any]] = [
        {"name": "contexture notifications", "app": NotifyEndpoint(), "url_prefix": PREFIX}
    ]
