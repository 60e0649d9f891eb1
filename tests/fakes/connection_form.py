"""Presses the test button of Airflow's connections, in Airflow's own API server, in a process and a home of its own.

`python -m fakes.connection_form`, with a JSON list of requests on its input, prints the answers as one JSON document:
each request names a role and a body, and may ask for the connection to be saved first.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Prints status and answer of each request; needs AIRFLOW_HOME and what else the environment of Airflow holds."""
    from airflow.utils.db import initdb
    from starlette.testclient import TestClient

    requests = json.load(sys.stdin)
    initdb()
    from airflow.api_fastapi.app import create_app

    client = TestClient(create_app("core"), base_url="http://127.0.0.1:8080")
    sys.stdout.write("\n" + json.dumps([_asked(client, **request) for request in requests]) + "\n")


def _asked(client: Any, role: str, body: dict[str, Any], save: dict[str, Any] | None = None) -> dict[str, Any]:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
    headers = {"Authorization": f"Bearer {token}"}
    if save is not None:
        saved = client.post("/api/v2/connections", json=save, headers=headers)
        assert saved.status_code == 201, saved.text
    answer = client.post("/api/v2/connections/test", json=body, headers=headers)
    return {"status": answer.status_code, "answer": answer.json()}


if __name__ == "__main__":
    main()
