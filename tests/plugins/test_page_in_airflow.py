"""The page in Airflow's own API server: its users and roles decide, and notifications still come in below it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

ROOT = Path(__file__).parents[2]
FILE = """
name: vehicles
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
"""


@pytest.fixture(scope="module")
def answers_by_user(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("airflow")
    (home / "publications").mkdir()
    (home / "publications" / "vehicles.yaml").write_text(FILE)
    changes = {
        "AIRFLOW_HOME": str(home),
        # As airflow.api_fastapi.main has it: connections come from the database too.
        "_AIRFLOW_PROCESS_CONTEXT": "server",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,op:op,viewer:viewer",
        "AIRFLOW__API__BASE_URL": "http://127.0.0.1:8080",
        "CONTEXTURE_HOME": str(home / "contexture"),
        "CONTEXTURE_PUBLICATIONS": str(home / "publications"),
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("tests", "plugins", "include", ".")),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "CONTEXTURE"))}
    done = subprocess.run(
        [sys.executable, "-m", "fakes.api_server"],
        env={**kept, **changes},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    document: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return document


@pytest.mark.parametrize("role", ["viewer", "op", "admin"])
def test_every_role_that_reads_dags_reads_the_page(answers_by_user, role):
    answers = answers_by_user[role]
    assert {path: answer["status"] for path, answer in answers.items() if path != "notify"} == {
        "/contexture/": 200,
        "/contexture/publications/vehicles": 200,
        "/contexture/publications/vehicles/runs": 200,
        "/contexture/api/publications": 200,
    }
    overview = answers["/contexture/"]
    assert "vehicles" in overview["text"]
    assert "(suspended)" in overview["text"]
    assert overview["policy"].startswith("default-src 'none'")


def test_a_run_shows_its_steps_as_airflow_timed_them(answers_by_user):
    text = answers_by_user["viewer"]["/contexture/publications/vehicles/runs"]["text"]
    plain = re.sub(r"<[^>]+>", "", text)
    assert "settle 2.0 s, stage 20.0 s, publish 15.0 s (failed), conclude - (running)" in plain
    assert '/dags/publish_vehicles/runs/manual__1/tasks/settle"' in text
    assert '/dags/publish_vehicles/runs/manual__1/tasks/publish/mapped/1"' in text
    assert ">running</span>" in answers_by_user["viewer"]["/contexture/"]["text"]


def test_a_run_that_waits_for_an_answer_leads_to_where_airflow_takes_it(answers_by_user):
    asked, answered = (answers_by_user[when]["/contexture/"]["text"] for when in ("asked", "answered"))
    assert ">waiting for approval</span>" in asked
    assert "would be deleted, once a person approves until 2026-03-02 12:00 UTC" in asked
    assert 'href="/dags/publish_vehicles/runs/manual__1/tasks/settle/required_actions"' in asked
    assert ">running</span>" in answered
    assert "required_actions" not in answered


@pytest.mark.parametrize("role", ["op", "admin"])
def test_op_and_admin_act_through_airflow_which_logs_it(answers_by_user, role):
    logged = {"reason": "the depot is open again", "is_paused": False, "method": "PATCH"}
    assert answers_by_user["acts"][role] == {
        "shown": 200,
        "done": 303,
        "problem": "",
        "paused": False,
        "logged": [[role, logged]],
    }


@pytest.mark.parametrize(("user", "status"), [("viewer", 403), ("anonymous", 303), ("forged", 303)])
def test_no_other_user_acts(answers_by_user, user, status):
    assert answers_by_user["acts"][user] == {
        "shown": status,
        "done": status,
        "problem": "",
        "paused": True,
        "logged": [],
    }


@pytest.mark.parametrize("role", ["op", "admin"])
def test_who_may_test_connections_may_propose_a_publication_from_them(answers_by_user, role):
    assert answers_by_user["proposes"][role] == {
        "new": 200,
        "offered": ["context_broker"],
        "properties": True,
        "unreachable": ["context_broker", "kafka_default"],
        "reason": True,
    }


def test_a_viewer_sees_which_connections_cannot_be_reached_and_nothing_of_them(answers_by_user):
    assert answers_by_user["proposes"]["viewer"] == {
        "new": 403,
        "offered": [],
        "properties": False,
        "unreachable": ["context_broker", "kafka_default"],
        "reason": False,
    }
    assert {answers_by_user["proposes"][user]["new"] for user in ("anonymous", "forged")} == {303}


@pytest.mark.parametrize("user", ["anonymous", "forged"])
def test_who_is_not_logged_in_gets_the_login_page(answers_by_user, user):
    answers = answers_by_user[user]
    assert answers["/contexture/"]["status"] == 303
    assert answers["/contexture/"]["location"] == "/api/v2/auth/login?next=%2Fplugin%2Fcontexture"
    assert answers["/contexture/api/publications"]["status"] in {401, 403}
    assert not [path for path, answer in answers.items() if "4wheels" in answer["text"]]


@pytest.mark.parametrize("user", ["anonymous", "viewer", "admin"])
def test_the_endpoint_of_notifications_asks_for_its_own_secret_from_every_user(answers_by_user, user):
    answer = answers_by_user[user]["notify"]
    assert answer["status"] == 401
    assert "Not authenticated" not in answer["text"]
    assert answer["policy"] is None


def test_the_navigation_has_an_entry(answers_by_user):
    [plugin] = [plugin for plugin in answers_by_user["views"]["plugins"] if plugin["name"] == "contexture"]
    [view] = [each for each in plugin["external_views"] if each["destination"] == "nav"]
    assert (view["name"], view["href"], view["destination"], view["url_route"]) == (
        "Contexture",
        "/contexture/",
        "nav",
        "contexture",
    )
