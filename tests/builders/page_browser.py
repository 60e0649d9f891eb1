"""The Contexture page in an API server that mounts it as Airflow does, asked as a browser would."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from typing import Any

import uvicorn
from airflow.api_fastapi.core_api.security import get_user
from fastapi import HTTPException, Request
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from builders.outboxes import NOON
from contexture.operations.status.detail import StepTime
from contexture.operations.status.health import DagFacts, OpenQuestion
from contexture_airflow.web.application import application
from contexture_airflow.web.asgi import WebPage
from contexture_airflow.web.installation import Installation

RESTING = DagFacts(paused=False, active=False, next_run_at=NOON + timedelta(minutes=5))
PAUSED = DagFacts(paused=True, active=False, next_run_at=None)
ORIGIN = "http://testserver"
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


class FakeAirflow:
    """Airflow as its users see it.

    `ana` reads and does everything, `eve` reads everything, `ben` only the buses, and `tom` the buses and connections.
    """

    def __init__(self, *names: str, dags: Sequence[str] = (), paused: Sequence[str] = ()) -> None:
        self.names = names
        self.others = dags
        self.paused = paused
        self.connections: dict[str, str] = {}
        self.questions: dict[str, OpenQuestion] = {}
        self.active: set[str] = set()
        self.started: dict[str, tuple[StepTime, ...]] = {}

    def dags(self, user: Any) -> Mapping[str, DagFacts]:
        seen = [name for name in self.names if user in {"ana", "eve"} or name == "buses"]
        facts = {name: PAUSED if name in self.paused else RESTING for name in seen}
        return {
            name: replace(known, question=self.questions.get(name), active=name in self.active)
            for name, known in facts.items()
        }

    def steps(self, publication: str, run_ids: Sequence[str]) -> Mapping[str, tuple[StepTime, ...]]:
        usual = (StepTime("stage", "success", 12.5), StepTime("publish", "failed", 61.0, 1))
        return {run_id: self.started.get(publication, usual) for run_id in run_ids}

    def name(self, user: Any) -> str:
        return str(user)

    def may_act(self, user: Any, publication: str) -> bool:
        return bool(user == "ana")

    def may_act_on_all(self, user: Any) -> bool:
        return bool(user == "ana")

    def may_test(self, user: Any, connection: str | None) -> bool:
        return user in {"ana", "tom"}

    def may_see_connection(self, user: Any, connection: str) -> bool:
        return user in {"ana", "tom"}

    def connection_types(self) -> Mapping[str, str]:
        return self.connections

    def has_dag(self, dag_id: str) -> bool:
        return dag_id in self.others


class FakeApi:
    """Airflow's public interface; keeps each request and its user, and responds as a test sets."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.status = 200
        self.paused: set[str] = set()
        self.runs: set[tuple[str, str]] = set()

    async def answer(self, request: Asked) -> JSONResponse:
        body = await request.json() if await request.body() else None
        address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        self.asked.append((request.method, address, body, request.headers.get("x-user") or request.cookies.get("who")))
        dag = request.path_params["dag"]
        run = (dag, str((body or {}).get("dag_run_id", "")))
        if request.method == "POST" and run in self.runs:
            return JSONResponse({"detail": "Unique constraint violation"}, 409)
        self.runs |= {run} if request.method == "POST" and self.status == 200 else set()
        return JSONResponse({"is_paused": dag in self.paused, "dag_run_id": run[1]}, self.status)


def who_asks(request: Request) -> str:
    name = request.headers.get("x-user")
    if name is None:
        raise HTTPException(401, "Not authenticated")
    return name


class Browser:
    """Asks an API server that mounts the page as Airflow does."""

    def __init__(self, *names: str, root_path: str = "", dags: Sequence[str] = (), paused: Sequence[str] = ()) -> None:
        self.api = FakeApi()
        self.airflow = FakeAirflow(*names, dags=dags, paused=paused)
        self.installation = Installation(self.airflow, lambda: NOON)
        page = application(self.installation)
        page.dependency_overrides[get_user] = who_asks
        mounted = Starlette(
            routes=[
                Route("/api/v2/dags/{dag}", self.api.answer, methods=["GET", "PATCH"]),
                Route("/api/v2/dags/{dag}/dagRuns", self.api.answer, methods=["POST"]),
                Mount("/contexture", app=WebPage(lambda: page)),
            ]
        )
        mounted.state.secret_key = "airflow's own secret"
        self._mounted = mounted
        self._client = TestClient(mounted, root_path=root_path, base_url=ORIGIN)
        self._root = f"{root_path}/contexture"

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serves the page to a real browser within the block; gives its address."""
        server = uvicorn.Server(uvicorn.Config(self._mounted, host="127.0.0.1", port=0, log_level="error"))
        thread = Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        [listener] = server.servers
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{self._root}"
        server.should_exit = True
        thread.join(30)

    def get(self, path: str, /, user: str | None = "ana", **query: Any) -> Any:
        headers = {"x-user": user} if user else {}
        return self._client.get(f"{self._root}/{path}", headers=headers, params=query or None, follow_redirects=False)

    def post(
        self, path: str, user: str | None = "ana", *, headers: Mapping[str, str] | None = None, **form: Any
    ) -> Any:
        """Sends a form; `headers`: those that name its origin."""
        given = {"origin": ORIGIN} if headers is None else headers
        who = {"x-user": user, "cookie": f"who={user}"} if user else {}
        return self._client.post(f"{self._root}/{path}", headers={**who, **given}, data=form, follow_redirects=False)

    def confirm(self, path: str, user: str = "ana", **form: Any) -> Any:
        """Opens the page that asks, and confirms it as shown."""
        outbox = {"outbox": form["outbox"]} if "outbox" in form else {}
        shown = self.get(path, user, **outbox)
        assert shown.status_code == 200, shown.text
        return self.post(path, user, **hidden_in(shown.text), **{"reason": "as agreed", **form})


def hidden_in(text: str) -> dict[str, str]:
    """What the form of a page carries unseen."""
    return {"token": token_in(text), **{name: given for name, given in _HIDDEN.findall(text) if name == "form"}}


def token_in(text: str) -> str:
    """What the form of a page carries."""
    (found,) = re.findall(r'name="token" value="([0-9a-f]{64})"', text)
    return found
