"""Parsing is done in processes of their own: what a DAG file imports must not depend on what tests imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
VEHICLES: dict[str, Any] = {
    "name": "vehicles",
    "description": "Cars of the fleet",
    "schedule": "*/5 * * * *",
    "source": {
        "kind": "ngsi",
        "connection": "context_broker",
        "service": "vehicles",
        "service_path": "/4wheels",
        "types": ["car"],
    },
}

Parse = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    """Parses DAG files with a folder of publications."""
    home = tmp_path_factory.mktemp("airflow")

    def parsed(publications: Path, file: str = "", dag_id: str | None = None) -> dict[str, Any]:
        environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
            "CONTEXTURE_PUBLICATIONS": str(publications),
            "PYTHONPATH": os.pathsep.join([str(PROJECT / "include"), str(PROJECT / "plugins")]),
            # Any attempt to reach a network ends here.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
        }
        if dag_id is not None:
            environment["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = dag_id
        command = [sys.executable, str(Path(__file__).with_name("parse.py")), str(PROJECT / "dags" / file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, Any] = json.loads(done.stdout.rsplit("\n", 1)[1])
        return found

    return parsed


@pytest.fixture(scope="session")
def write_publications() -> Callable[..., Path]:
    """Writes publication files, one for each name."""

    def written(folder: Path, *names: str, **changes: Any) -> Path:
        for name in names:
            (folder / f"{name}.yaml").write_text(yaml.safe_dump({**VEHICLES, "name": name, **changes}))
        return folder

    return written
