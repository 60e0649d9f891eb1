"""The one file of Contexture that Airflow executes as a plugin; everything else is in the package beside it."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from contexture_airflow.notify_endpoint import PREFIX, NotifyEndpoint
from contexture_airflow.web import asgi


class ContexturePlugin(AirflowPlugin):
    """Shows Contexture in the navigation and on tabs of its DAGs, and receives notifications in the API server."""

    name = "contexture"
    fastapi_apps: ClassVar[list[Any]] = [
        # The first that matches answers, and the page is mounted above the endpoint.
        {"name": "contexture notifications", "app": NotifyEndpoint(), "url_prefix": PREFIX},
        {"name": "contexture page", "app": asgi.WebPage(), "url_prefix": asgi.PREFIX},
    ]
    external_views: ClassVar[list[Any]] = [asgi.VIEW, *asgi.TABS]
