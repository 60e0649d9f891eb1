"""Airflow's own API server with our plugin in it, in a process and a home of its own.

`python -m fakes.api_server` asks it as several users would, and prints what it answered as one JSON document.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

STEPS = [
    ("publish", 0, 30, 5, "success"),
    ("publish", 1, 31, 14, "failed"),
    ("settle", -1, 0, 2, "success"),
    ("stage", -1, 2, 20, "success"),
    ("conclude", -1, 50, None, "running"),
]
"""Tasks of a run: name, shard, when it began, how long it took, and its state."""


def main() -> None:
    """Prints the answers by user and path; needs AIRFLOW_HOME and what else the environment of Airflow holds."""
    from airflow.utils.db import initdb
    from starlette.testclient import TestClient

    initdb()
    _add_dags()
    _note_run()
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    client = TestClient(create_app("core"), base_url="http://127.0.0.1:8080")
    tokens: dict[str, str | None] = {
        role: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
        for role in ("viewer", "op", "admin")
    }
    tokens |= {"anonymous": None, "forged": "eyJhbGciOiJub25lIn0.e30."}
    found = {user: _answers(client, token) for user, token in tokens.items()}
    found["acts"] = {user: _resumes(client, token) for user, token in tokens.items()}
    _add_connection()
    found["proposes"] = {user: _proposes(client, token) for user, token in tokens.items()}
    found["asked"] = _answers(client, tokens["viewer"], ask=True)
    found["answered"] = _answers(client, tokens["viewer"], ask=False)
    found["views"] = client.get("/api/v2/plugins", headers={"Authorization": f"Bearer {tokens['admin']}"}).json()
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def _note_run() -> None:
    from contexture.monitoring import RunTables
    from contexture.storage.home import home_uri

    store = RunTables.of_home(home_uri())
    assert store is not None
    store.insert_run("vehicles", "run1", run_id="manual__1", mode="full", sequence=1)
    store.close()


def _add_dags() -> None:
    from datetime import UTC, datetime, timedelta

    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)

    with create_session() as session:
        session.add(DagBundleModel(name="dags"))
        session.flush()
        session.add(
            DagModel(
                dag_id="publish_vehicles",
                bundle_name="dags",
                is_paused=True,
                max_active_tasks=1,
                max_consecutive_failed_dag_runs=0,
                has_task_concurrency_limits=False,
                has_import_errors=False,
                is_stale=False,
                fileloc="/dags/publications.py",
                relative_fileloc="publications.py",
                owners="contexture",
            )
        )
        session.flush()
        session.add(DagRun(dag_id="publish_vehicles", run_id="manual__1", run_type="manual", state="running"))
        session.flush()
        for task, shard, begun, took, state in STEPS:
            session.execute(
                TaskInstance.__table__.insert().values(
                    dag_id="publish_vehicles",
                    run_id="manual__1",
                    task_id=task,
                    map_index=shard,
                    state=state,
                    start_date=noon + timedelta(seconds=begun),
                    end_date=None if took is None else noon + timedelta(seconds=begun + took),
                    pool="default_pool",
                    pool_slots=1,
                    try_number=1,
                )
            )


def _ask(waits: bool) -> None:
    """Has the run's first task wait for an answer, or an answer given that the scheduler has not seen yet."""
    from datetime import UTC, datetime

    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select, update

    until = datetime(2026, 3, 2, 12, tzinfo=UTC)
    with create_session() as session:
        if not waits:
            session.execute(update(HITLDetail).values(responded_at=until))
            return
        task = TaskInstance.task_id == "settle"
        session.execute(update(TaskInstance).where(task).values(state="awaiting_input", trigger_timeout=until))
        instance = session.scalar(select(TaskInstance.id).where(task))
        session.add(HITLDetail(ti_id=instance, options=["Approve", "Reject"], subject="may they go?"))


def _answers(client: Any, token: str | None, ask: bool | None = None) -> dict[str, Any]:
    if ask is not None:
        _ask(ask)
    client.cookies.clear()
    if token:
        client.cookies.set("_token", token)
    paths = ("/contexture/", "/contexture/publications/vehicles", "/contexture/publications/vehicles/runs")
    found = {
        path: _answer(client.get(path, follow_redirects=False)) for path in (*paths, "/contexture/api/publications")
    }
    found["notify"] = _answer(client.post("/contexture/notify/vehicles", json={}))
    return found


def _add_connection() -> None:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Connection(conn_id="context_broker", conn_type="http", host="127.0.0.1", port=9))
        session.add(Connection(conn_id="bucket", conn_type="aws"))


def _proposes(client: Any, token: str | None) -> dict[str, Any]:
    """What a user sees of connections: those that a new publication may read, and the properties of one."""
    client.cookies.clear()
    if token:
        client.cookies.set("_token", token)
    new = client.get("/contexture/new", follow_redirects=False)
    properties = client.get("/contexture/publications/vehicles/connections", follow_redirects=False)
    unreachable = client.get("/contexture/connections/unreachable", follow_redirects=False)
    return {
        "new": new.status_code,
        "offered": re.findall(r'<option value="(\w+)">', new.text),
        "properties": "http://127.0.0.1:9" in properties.text,
        "unreachable": re.findall(r"The connection <code>(\w+)</code>", unreachable.text),
        "reason": "127.0.0.1:9" in unreachable.text,
    }


def _resumes(client: Any, token: str | None) -> dict[str, Any]:
    """What becomes of a user's wish to resume a publication that is paused, and what Airflow's audit log says of it."""
    from airflow.models.dag import DagModel
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select, update

    with create_session() as session:
        session.execute(update(DagModel).values(is_paused=True))
    client.cookies.clear()
    if token:
        client.cookies.set("_token", token)
    path = "/contexture/publications/vehicles/actions/resume"
    shown = client.get(path, follow_redirects=False)
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown.text))
    form = {**hidden, "reason": "the depot is open again"}
    done = client.post(path, data=form, headers={"origin": "http://127.0.0.1:8080"}, follow_redirects=False)
    with create_session() as session:
        paused = session.scalar(select(DagModel.is_paused))
        logged = session.execute(select(Log.owner, Log.extra).where(Log.event == "patch_dag")).all()
        session.query(Log).delete()
    return {
        "shown": shown.status_code,
        "done": done.status_code,
        "problem": "".join(re.findall(r'role="alert">([^<]*)', done.text)),
        "paused": paused,
        "logged": [[owner, json.loads(extra)] for owner, extra in logged],
    }


def _answer(answer: Any) -> dict[str, Any]:
    return {
        "status": answer.status_code,
        "location": answer.headers.get("location"),
        "policy": answer.headers.get("content-security-policy"),
        "text": answer.text,
    }


if __name__ == "__main__":
    main()
