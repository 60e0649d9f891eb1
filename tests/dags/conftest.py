"""Parsing is done in processes of their own: what a DAG file imports must not depend on what tests imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
DAGS = PROJECT / "dags"
BROKEN = "name: broken\nsource: {kind: ngsi, connection: x, service: a, typs: [car]}\n"
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


def write_publications(folder: Path, *names: str, **changes: Any) -> Path:
    """Writes publication files, one for each name; returns the folder."""
    for name in names:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**VEHICLES, "name": name, **changes}))
    return folder


@pytest.fixture(scope="session")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What parsing gave, by scenario; in one process, for importing Airflow costs more than parsing."""
    few, many = tmp_path_factory.mktemp("few"), tmp_path_factory.mktemp("many")
    write_publications(few, "bikes", "vehicles")
    write_publications(
        few, "by-hand", schedule=None, batches={"batch_ttl": -1}, notify={"published_within_minutes": 30}
    )
    (few / "audit.yaml").write_text("name: audit\nsource: {kind: operations}\ntopics: {topics: [ops]}\n")
    (few / "broken.yaml").write_text(BROKEN)
    write_publications(many, *[f"p{number:03}" for number in range(200)])
    scenarios = {
        "all": {"publications": str(few), "file": str(DAGS), "dag_id": None},
        "task": {"publications": str(many), "file": str(DAGS / "publications.py"), "dag_id": "publish_p007"},
        "many": {"publications": str(many), "file": str(DAGS / "publications.py"), "dag_id": None},
        "bare": {"publications": str(many), "file": str(Path(__file__).with_name("bare.py")), "dag_id": None},
        "scheduled": {
            "publications": str(few),
            "file": str(DAGS / "verify_replica.py"),
            "dag_id": None,
            "variables": {"CONTEXTURE_VERIFY_SCHEDULE": "0 3 * * *"},
        },
    }
    command = [sys.executable, str(Path(__file__).with_name("parse.py"))]
    done = subprocess.run(
        command,
        input=json.dumps(list(scenarios.values())),
        env=environment(tmp_path_factory.mktemp("airflow")),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(scenarios, json.loads(done.stdout.rsplit("\n", 1)[1]), strict=True))


def environment(home: Path) -> dict[str, str]:
    """Airflow's variables."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "include"), str(PROJECT / "plugins")]),
    }
