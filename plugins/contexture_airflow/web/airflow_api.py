"""Airflow's public interface, asked within this process as the user who asks the page.

Airflow checks the user's rights again and writes its audit log, as if its own page had asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import httpx
from fastapi import Request

from contexture.errors import ConfigurationError, RetriableError
from contexture_airflow.web.asgi import AIRFLOW

# Who asks, for Airflow, and that a page did.
_FORWARDED: Final = ("cookie", "authorization", "referer")
_LONGEST_ANSWER: Final = 300


class RefusedError(ConfigurationError):
    """Airflow does not let this user do that."""


class AlreadyStartedError(ConfigurationError):
    """The run of a form was started already: it was sent twice."""


class AirflowApi:
    """Implements `contexture.operations.actions.interventions.DagControl`, and more.

    Its methods are called in a thread beside the event loop: Airflow's own application answers within that loop.

    Args:
        request: the request of the user.
        loop: the event loop that the request came in by.
        form: names the run that the user's form starts, so that a form that is sent twice starts it once.
    """

    def __init__(self, request: Request, loop: asyncio.AbstractEventLoop, form: str) -> None:
        self._application = request.scope[AIRFLOW]
        self._headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        self._loop = loop
        self._form = form

    def is_paused(self, dag_id: str) -> bool:
        """Whether runs of a DAG wait until it is resumed.

        Raises:
            RefusedError: the user may not see it.
            ConfigurationError: Airflow does not know the DAG.
            RetriableError: Airflow failed.
        """
        return bool(self._ask("GET", f"/api/v2/dags/{dag_id}", dag_id)["is_paused"])

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        """Starts a run, its reason as its note; gives its id.

        Raises:
            AlreadyStartedError: the same form has started it already.
            ContextureError: as `is_paused`.
        """
        run = {"dag_run_id": f"manual__{self._form}", "logical_date": None}
        body = {**run, "conf": dict(conf), "note": conf.get("reason")}
        return str(self._ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", dag_id, json=body)["dag_run_id"])

    def pause(self, dag_id: str, paused: bool, reason: str) -> None:
        """Suspends a DAG or resumes it. Raises as `is_paused`."""
        # The audit log keeps parameters of the address, and so the reason.
        self._ask("PATCH", f"/api/v2/dags/{dag_id}", dag_id, json={"is_paused": paused}, params={"reason": reason})

    def _ask(self, method: str, path: str, dag_id: str, **given: Any) -> dict[str, Any]:
        asked = self._send(method, path, **given)
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop).result()
        if answer.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise RefusedError(
                f"Airflow does not allow you to do this with {dag_id}",
                next_step="ask the administrator of its users and roles",
            )
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise ConfigurationError(
                f"Airflow has no DAG {dag_id}", next_step="check whether its file shows as an import error"
            )
        if answer.status_code == httpx.codes.CONFLICT:
            raise AlreadyStartedError("this form has started its run already", next_step="see the run")
        if answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise RetriableError(
                f"Airflow responded with {answer.status_code}", next_step="read the log of its API server, and retry"
            )
        if not answer.is_success:
            raise ConfigurationError(
                f"Airflow responded with {answer.status_code}: {answer.text[:_LONGEST_ANSWER]}",
                next_step="correct what it names",
            )
        found: dict[str, Any] = answer.json()
        return found

    async def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://airflow") as client:
            return await client.request(method, path, headers=self._headers, **given)
