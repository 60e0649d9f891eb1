"""Airflow's own API server with our plugin in it, in a process and a home of its own.

`python -m fakes.api_server` asks it as several users would, and prints what it answered as one JSON document.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Prints the answers by user and path; needs AIRFLOW_HOME and what else the environment of Airflow holds."""
    from airflow.utils.db import initdb
    from starlette.testclient import TestClient

    initdb()
    _add_dags()
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    client = TestClient(create_app("core"), base_url="http://127.0.0.1:8080")
    tokens: dict[str, str | None] = {
        role: get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
        for role in ("viewer", "op", "admin")
    }
    tokens |= {"nobody": None, "forged": "eyJhbGciOiJub25lIn0.e30."}
    told = {user: _answers(client, token) for user, token in tokens.items()}
    told["views"] = client.get("/api/v2/plugins", headers={"Authorization": f"Bearer {tokens['admin']}"}).json()
    sys.stdout.write("\n" + json.dumps(told) + "\n")


def _add_dags() -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

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
            )
        )


def _answers(client: Any, token: str | None) -> dict[str, Any]:
    client.cookies.clear()
    if token:
        client.cookies.set("_token", token)
    paths = ("/contexture/", "/contexture/publications/vehicles", "/contexture/publications/vehicles/runs")
    told = {
        path: _answer(client.get(path, follow_redirects=False)) for path in (*paths, "/contexture/api/publications")
    }
    told["notify"] = _answer(client.post("/contexture/notify/vehicles", json={}))
    return told


def _answer(answer: Any) -> dict[str, Any]:
    return {
        "status": answer.status_code,
        "location": answer.headers.get("location"),
        "policy": answer.headers.get("content-security-policy"),
        "text": answer.text,
    }


if __name__ == "__main__":
    main()
