"""Airflow for operator tests: no database, connections from the environment."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.page_installation import page_installation
from contexture.monitoring import RunTables
from contexture.storage.home import Home

if TYPE_CHECKING:
    from builders.page_browser import Browser

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


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of two publications, `vehicles` and `buses`, nothing of which has run."""
    return page_installation(tmp_path, monkeypatch)


@pytest.fixture
def tables(home: Home) -> Iterator[RunTables]:
    """The operational tables of that home."""
    store = RunTables.of_home(home.root)
    assert store is not None
    yield store
    store.close()


@pytest.fixture
def browser(home: Home) -> Browser:
    """A browser of the page that shows them."""
    from builders.page_browser import Browser

    return Browser("vehicles", "buses")
