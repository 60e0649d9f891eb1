"""Airflow for operator tests: no database, connections from the environment."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable

import pytest

# Airflow writes its configuration at import, into the user's home unless AIRFLOW_HOME is set.
if "AIRFLOW_HOME" not in os.environ:
    _HOME = tempfile.TemporaryDirectory(prefix="contexture-airflow-", ignore_cleanup_errors=True)
    os.environ["AIRFLOW_HOME"] = _HOME.name

SetConnection = Callable[..., None]


@pytest.fixture
def set_connection(monkeypatch: pytest.MonkeyPatch) -> SetConnection:
    """Sets an Airflow connection for the length of a test."""

    def set_(connection_id: str, **fields: object) -> None:
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id.upper()}", json.dumps(fields))

    return set_
