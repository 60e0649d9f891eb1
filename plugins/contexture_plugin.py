"""The one file of Contexture that Airflow executes as a plugin; everything else is in the package beside it."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class ContexturePlugin(AirflowPlugin):
    """Makes Contexture show up under Admin, Plugins."""

    name = "contexture"
