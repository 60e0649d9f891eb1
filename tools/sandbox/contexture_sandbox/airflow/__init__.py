"""Airflow on one machine: its environment, its processes and its REST interface."""

from __future__ import annotations

from contexture_sandbox.airflow.client import AirflowClient
from contexture_sandbox.airflow.environment import AirflowSettings, Login
from contexture_sandbox.airflow.processes import AirflowProcesses

__all__ = ["AirflowClient", "AirflowProcesses", "AirflowSettings", "Login"]
