"""The test button of Airflow's connections, pressed in Airflow's own API server, against a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contexture_sandbox.ports import free_port

pytestmark = [pytest.mark.integration, pytest.mark.airflow]

ROOT = Path(__file__).parents[2]


def body(connection_id: str, **fields: Any) -> dict[str, Any]:
    return {"connection_id": connection_id, "conn_type": "contexture_kafka", **fields}


@pytest.fixture(scope="module")
def answers(kafka, tmp_path_factory) -> list[dict[str, Any]]:
    home = tmp_path_factory.mktemp("airflow")
    host, port = kafka.bootstrap_servers.split(":")
    ours = {"host": host, "port": int(port), "login": "me", "password": "hunter2"}
    # As the list of connections sends what it knows: secrets masked, and empty fields as empty texts.
    listed = {"password": "***", "schema": "", "description": "", "extra": "{}"}
    requests = [
        {"role": "admin", "body": body("good", host=host, port=int(port))},
        {"role": "admin", "body": body("away", host=host, port=free_port(), login="me", password="hunter2")},
        {"role": "viewer", "body": body("good", host=host, port=int(port))},
        {"role": "op", "save": body("saved", **ours), "body": body("saved", **{**ours, **listed})},
        {"role": "admin", "body": body("theirs", conn_type="kafka", extra=json.dumps(kafka.client_settings()))},
    ]
    changes = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "none"),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,op:op,viewer:viewer",
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("tests", "plugins", "include", ".")),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "CONTEXTURE"))}
    done = subprocess.run(
        [sys.executable, "-m", "fakes.connection_form"],
        env={**kept, **changes},
        cwd=home,
        input=json.dumps(requests),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "hunter2" not in done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_what_works_is_reported_step_by_step(answers, kafka):
    assert (answers[0]["status"], answers[0]["answer"]["status"]) == (200, True)
    whole, *steps = answers[0]["answer"]["message"].splitlines()
    assert whole.startswith(f"PLAINTEXT://{kafka.bootstrap_servers}, cluster ")
    assert whole.endswith(": it works.")
    assert [step.partition(": ")[0] for step in steps] == [
        f"server {kafka.bootstrap_servers}",
        "authentication",
        "create topics",
        "transactions",
        "message size",
        "clock",
        "clean up",
    ]
    assert {step.partition(": ")[2].partition(" (")[0] for step in steps} == {"works"}


def test_a_wrong_port_is_reported_with_what_to_do(answers):
    assert (answers[1]["status"], answers[1]["answer"]["status"]) == (200, False)
    whole, server, *others = answers[1]["answer"]["message"].splitlines()
    assert whole.endswith(": it cannot be reached.")
    assert server.endswith(": nothing listens there. Next: start the broker, or correct its port in bootstrap.servers.")
    assert {step.partition(": ")[2].partition(" (")[0] for step in others} == {"not tried"}


def test_who_may_not_edit_connections_may_not_test_them(answers):
    assert answers[2]["status"] == 403


def test_a_saved_connection_is_tested_with_the_secrets_it_has(answers):
    assert (answers[3]["status"], answers[3]["answer"]["status"]) == (200, True), answers[3]


def test_connections_of_the_kafka_providers_type_go_on_to_work(answers):
    assert answers[4] == {"status": 200, "answer": {"status": True, "message": "Connection successful."}}
