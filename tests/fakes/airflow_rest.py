"""Airflow's REST interface on a socket, as far as the command line asks it: all DAGs are there, none is paused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class AirflowRest:
    """What was asked of it.

    Attributes:
        url: where it listens.
        started: path and body of each request that starts something.
    """

    url: str
    started: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def variables(self) -> dict[str, str]:
        """The settings of the command line: where Airflow is, and the user."""
        return {"CONTEXTURE_AIRFLOW_URL": self.url, "CONTEXTURE_AIRFLOW_TOKEN": "t"}


@contextmanager
def airflow_rest() -> Iterator[AirflowRest]:
    """It answers until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer({"is_paused": False, "dag_runs": [], "pools": []})

        def do_POST(self) -> None:
            airflow.started.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.answer({"dag_run_id": "manual__1", "id": 1})

        def answer(self, document: object) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def log_message(self, *ignored: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        airflow = AirflowRest(f"http://127.0.0.1:{server.server_port}")
        Thread(target=server.serve_forever, daemon=True).start()
        yield airflow
        server.shutdown()
